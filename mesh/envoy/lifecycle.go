package envoy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	silence     = 10 * time.Second // until a started Envoy is taken for stuck
	termTimeout = 2 * time.Second
	// pollInterval is how often Envoy's admin is asked: it has nothing to wait on.
	pollInterval = 10 * time.Millisecond
	// drainSeconds is beyond every drain of ours: what ends a drain is its Stop.
	drainSeconds = "30"
)

// start starts an Envoy that reads the bootstrap file.
func (s *Supervisor) start(rec record) (*process, int64, error) {
	log, offset, err := openLog(s.path(logFile))
	if err != nil {
		return nil, 0, err
	}
	defer log.Close()
	// No CommandContext: the end of the gateway's context is not Envoy's.
	cmd := exec.Command(s.cfg.Program,
		"-c", s.path(bootstrapFile),
		"--disable-hot-restart", // or several on one machine need base ids, whose files stay
		"--concurrency", "1",
		"--log-level", s.cfg.LogLevel,
		"--drain-strategy", "immediate", "--drain-time-s", drainSeconds,
	)
	cmd.Stdout, cmd.Stderr = log, log
	p, err := spawn(cmd)
	if err != nil {
		return nil, 0, &ProgramError{Path: s.cfg.Program, Err: err}
	}
	if rec.Start, err = startTime(p.pid); err != nil { // it has ended already
		kill(p)
		return nil, 0, s.explain(fmt.Errorf("process %d: %s", p.pid, p.end), offset)
	}
	rec.PID = p.pid
	if err := rec.write(s.path(pidFile)); err != nil {
		kill(p)
		return nil, 0, err
	}
	s.enter(Starting, func(st *State) { st.PID, st.NodeID, st.Adopted = p.pid, rec.NodeID, false })
	return p, offset, nil
}

// awaitLive waits until Envoy is LIVE or another id is wanted. While the control
// plane is away that takes Envoy's own 15 s, so only silence is a failure.
func (s *Supervisor) awaitLive(ctx context.Context, p *process, id string) error {
	var last error
	heard := time.Now()
	ok := poll(ctx, p, func() bool {
		live, err := s.admin.Live(ctx)
		if err == nil {
			heard = time.Now()
		}
		last = err
		return live || s.nodeID() != id || time.Since(heard) > silence
	})
	switch {
	case ctx.Err() != nil, ok && last == nil:
		return nil
	case p.ended():
		return fmt.Errorf("process %d: %s", p.pid, p.end)
	default:
		return fmt.Errorf("process %d does not answer for %v: %w", p.pid, silence, last)
	}
}

// stop drains and ends an Envoy: leave is taken of the callers, requests in
// flight may end within the drain time, then SIGTERM, then SIGKILL.
func (s *Supervisor) stop(ctx context.Context, p *process) {
	if !p.ended() {
		s.enter(Draining, nil)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Drain)
	defer cancel()
	if err := s.admin.drain(ctx); err == nil {
		poll(ctx, p, func() bool {
			n, err := s.admin.ActiveRequests(ctx)
			return err == nil && n == 0
		})
	}
	p.signal(syscall.SIGTERM)
	term := time.NewTimer(termTimeout)
	defer term.Stop()
	select {
	case <-p.done:
	case <-term.C:
		s.log.Warn("envoy does not end, it is killed", "pid", p.pid)
		kill(p)
	}
	if err := os.Remove(s.path(pidFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.log.Warn("envoy pid file not removed", "error", err)
	}
}

func kill(p *process) {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// poll asks done until it is true; it returns false when ctx or the process ended
// before.
func poll(ctx context.Context, p *process, done func() bool) bool {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-p.done:
			return false
		case <-tick.C:
		}
	}
	return true
}
