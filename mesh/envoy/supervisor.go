// Package envoy runs the one Envoy of an HPC (CAR-3, 39): it writes the
// bootstrap, finds or starts the process, starts it again when it dies, and lets
// it drain before it is stopped.
//
// Envoy's node id is fixed at its start, so it starts once the node holds an id,
// and a new id means a drained replacement (CAR-11). It may outlive its gateway:
// the next run of the gateway adopts it by the pid file.
package envoy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"carisma.dev/gateway/mesh/unixsock"
)

// The files of an Envoy in the state directory.
const (
	bootstrapFile = "envoy.json"
	logFile       = "envoy.log"
	pidFile       = "envoy.pid"
	adminFile     = "envoy.sock"
)

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 5 * time.Second
	// steady is how long an Envoy lives until its end starts the back-off anew.
	steady = 2 * time.Second
)

// Config says how to run Envoy.
type Config struct {
	Program   string // from Find
	Version   Version
	LogLevel  string // Envoy's own; default "warning"
	NodeName  string
	State     string // existing directory
	ADSSocket string // where the gateway serves ADS
	// Drain is how long the callers' requests may go on when Envoy is stopped;
	// default 500 ms.
	Drain time.Duration
	// Keep leaves Envoy running when Run ends.
	Keep   bool
	Logger *slog.Logger
}

// Supervisor runs one Envoy. Its methods are safe for concurrent use.
type Supervisor struct {
	cfg   Config
	log   *slog.Logger
	admin *Admin

	mu      sync.Mutex
	state   State
	want    string        // the node id to run with
	changed chan struct{} // told when want changes
}

// New checks what can be checked before Envoy starts, such as the length of the
// socket paths.
func New(cfg Config) (*Supervisor, error) {
	if cfg.LogLevel == "" {
		cfg.LogLevel = "warning"
	}
	if cfg.Drain == 0 {
		cfg.Drain = 500 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	admin := filepath.Join(cfg.State, adminFile)
	for _, path := range []string{cfg.ADSSocket, admin} {
		if err := unixsock.Check(path); err != nil {
			return nil, err
		}
	}
	return &Supervisor{
		cfg:     cfg,
		log:     cfg.Logger.With("component", "envoy"),
		admin:   NewAdmin(admin),
		changed: make(chan struct{}, 1),
		state: State{
			Phase: Waiting, Since: time.Now(),
			Program: cfg.Program, Version: cfg.Version.String(),
		},
	}, nil
}

// Admin returns a client of the Envoy's administration.
func (s *Supervisor) Admin() *Admin { return s.admin }

// SetNodeID says which id Envoy has to run with. A running Envoy with another
// one is drained and replaced (CAR-11).
func (s *Supervisor) SetNodeID(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.want == id {
		return
	}
	s.want = id
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *Supervisor) nodeID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.want
}

// Run supervises until ctx ends; then it drains and stops Envoy, or leaves it
// running if so configured. That Envoy does not run is no error of Run: it is
// tried again, and State and the log say why.
func (s *Supervisor) Run(ctx context.Context) error {
	backoff := backoffMin
	for {
		id, ok := s.awaitID(ctx)
		if !ok {
			s.enter(Stopped, nil)
			return nil
		}
		began := time.Now()
		err := s.runOnce(ctx, id)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil { // another id is wanted
			continue
		}
		s.fail(err)
		if time.Since(began) > steady { // callers wait for it
			backoff = backoffMin
			continue
		}
		if !s.pause(ctx, backoff) {
			s.enter(Stopped, nil)
			return nil
		}
		backoff = min(2*backoff, backoffMax)
	}
}

func (s *Supervisor) awaitID(ctx context.Context) (string, bool) {
	for {
		if ctx.Err() != nil {
			return "", false
		}
		if id := s.nodeID(); id != "" {
			return id, true
		}
		select {
		case <-ctx.Done():
		case <-s.changed:
		}
	}
}

// pause waits, though not once another id is wanted, and returns false when ctx
// has ended.
func (s *Supervisor) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.changed:
	case <-timer.C:
	}
	return true
}

// runOnce runs one Envoy with the id. It returns nil when ctx ended or another id
// is wanted, else why Envoy does not run.
func (s *Supervisor) runOnce(ctx context.Context, id string) error {
	p, logStart, err := s.obtain(ctx, id)
	if err != nil {
		return err
	}
	if err := s.awaitLive(ctx, p, id); err != nil {
		s.stop(ctx, p)
		return s.explain(err, logStart)
	}
	if ctx.Err() == nil && s.nodeID() == id {
		s.enter(Live, nil)
	}
	for {
		select {
		case <-ctx.Done():
			if s.cfg.Keep {
				s.enter(Left, nil)
				return nil
			}
			s.stop(ctx, p)
			s.enter(Stopped, func(st *State) { st.PID = 0 })
			return nil
		case <-p.done:
			return s.explain(fmt.Errorf("process %d: %s", p.pid, p.end), logStart)
		case <-s.changed:
			if s.nodeID() != id {
				s.stop(ctx, p)
				return nil
			}
		}
	}
}

// explain adds what Envoy logged to the way it ended.
func (s *Supervisor) explain(err error, logStart int64) error {
	if tail := logTail(s.path(logFile), logStart); tail != "" {
		return fmt.Errorf("%w: %s", err, tail)
	}
	return err
}

func (s *Supervisor) path(file string) string { return filepath.Join(s.cfg.State, file) }

// obtain returns the Envoy that runs already with this id and bootstrap, or
// starts one. It also returns where in the log its lines begin.
func (s *Supervisor) obtain(ctx context.Context, id string) (*process, int64, error) {
	bootstrap, err := Bootstrap{
		NodeID: id, NodeName: s.cfg.NodeName,
		ADSSocket: s.cfg.ADSSocket, AdminSocket: s.path(adminFile),
	}.JSON()
	if err != nil {
		return nil, 0, fmt.Errorf("envoy bootstrap: %w", err)
	}
	want := record{NodeID: id, Bootstrap: digest(bootstrap), Program: s.cfg.Program, LogLevel: s.cfg.LogLevel}
	if p := s.adopt(ctx, want); p != nil {
		var size int64
		if info, err := os.Stat(s.path(logFile)); err == nil {
			size = info.Size()
		}
		return p, size, nil
	}
	if ctx.Err() != nil {
		return nil, 0, ctx.Err()
	}
	if err := writeFile(s.path(bootstrapFile), bootstrap); err != nil {
		return nil, 0, err
	}
	return s.start(want)
}

// adopt returns the Envoy of the pid file if it is the wanted one; any other that
// still runs is stopped, for there is one per HPC (CAR-3).
func (s *Supervisor) adopt(ctx context.Context, want record) *process {
	have, err := readRecord(s.path(pidFile))
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			s.log.Warn("envoy pid file not read", "error", err)
		}
		return nil
	}
	p, err := attach(have.PID, have.Start)
	if err != nil {
		s.log.Debug("no envoy to adopt", "error", err)
		return nil
	}
	want.PID, want.Start = have.PID, have.Start
	if have == want {
		if id, err := s.admin.NodeID(ctx); err == nil && id == want.NodeID {
			s.enter(Starting, func(st *State) { st.PID, st.NodeID, st.Adopted = p.pid, id, true })
			return p
		}
	}
	s.log.Info("envoy of an earlier run is replaced", "pid", have.PID, "node_id", have.NodeID)
	s.stop(ctx, p)
	return nil
}
