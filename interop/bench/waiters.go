package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"carisma.dev/gateway/interop/bench/benchv1"
	"carisma.dev/gateway/interop/wait"
	"carisma.dev/gateway/vehicles/hosts"
	"carisma.dev/gateway/vehicles/run"
)

// moments are when things happened last.
type moments struct {
	mu   sync.Mutex
	last map[string]int64
	err  error
	news chan struct{} // closed with each
}

func newMoments() *moments { return &moments{last: map[string]int64{}, news: make(chan struct{})} }

func (m *moments) happened(what string, at int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last[what], m.err = at, err
	close(m.news)
	m.news = make(chan struct{})
}

// await waits until something happened after a time.
func (m *moments) await(ctx context.Context, what string, since int64) (int64, error) {
	for {
		m.mu.Lock()
		at, err, news := m.last[what], m.err, m.news
		m.mu.Unlock()
		if at > since || err != nil {
			return at, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return 0, fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
}

// What happens.
const (
	answered = "answered"
	event    = "event"
	gone     = "gone"
)

// poller is a gRPC client that tries again and again, and watches.
type poller struct {
	*client

	pause   time.Duration
	moments *moments
}

// poll watches from now until ctx ends.
func (c *client) poll(ctx context.Context, pause time.Duration) poller {
	p := poller{c, pause, newMoments()}
	go func() {
		for ctx.Err() == nil {
			p.watch(ctx) // its end is what reboots look like
			_ = wait.For(ctx, pause)
		}
	}()
	return p
}

func (p poller) watch(ctx context.Context) {
	stream, err := benchv1.NewEchoClient(p.conn).WatchLevel(toInstance(ctx, starting), &benchv1.EchoWatchLevelRequest{})
	if err != nil {
		return
	}
	for {
		if _, err := stream.Recv(); err != nil {
			return
		}
		p.moments.happened(event, monotonic(), nil)
	}
}

func (p poller) answered(ctx context.Context, _ int64) (int64, error) {
	return p.until(ctx, func(ctx context.Context) bool { return p.call(ctx, starting) == nil })
}

func (p poller) event(ctx context.Context, since int64) (int64, error) {
	return p.moments.await(ctx, event, since)
}

func (p poller) gone(ctx context.Context) error {
	_, err := p.until(ctx, func(ctx context.Context) bool { return p.call(ctx, starting) != nil })
	return err
}

// until returns when a condition held.
func (p poller) until(ctx context.Context, holds func(context.Context) bool) (int64, error) {
	for !holds(ctx) {
		if err := wait.For(ctx, p.pause); err != nil {
			return 0, err
		}
	}
	return monotonic(), ctx.Err()
}

// vsomeipWaiter is a vsomeip client that prints what happens.
type vsomeipWaiter struct {
	*moments

	cmd  *exec.Cmd
	in   io.Closer
	log  *os.File
	done chan struct{}
}

// waitOnVsomeip starts a vsomeip client that waits for the ECU.
func (o Options) waitOnVsomeip(ctx context.Context, r *run.Runner) (_ *vsomeipWaiter, err error) {
	n := r.Vehicle().Network(network)
	cmd := exec.CommandContext(ctx, filepath.Join(o.Vsomeip, "bench_starts"))
	cmd.Env = append(os.Environ(),
		"CARISMA_NETWORK="+network, "CARISMA_INTERFACE="+hosts.DeviceName(network),
		"CARISMA_ADDRESS="+r.Addr(waitingHost, network).String(), "CARISMA_PREFIX_LEN="+strconv.Itoa(n.Subnet.Bits()),
		"CARISMA_SD_GROUP="+n.SD.Group.String(), "CARISMA_SD_PORT="+strconv.Itoa(int(n.SD.Port)))
	w := &vsomeipWaiter{moments: newMoments(), cmd: cmd, done: make(chan struct{})}
	if w.log, err = os.Create(filepath.Join(o.Dir, "bench_starts.log")); err != nil {
		return nil, err
	}
	cmd.Stderr = w.log
	out, err := cmd.StdoutPipe()
	if err == nil {
		w.in, err = cmd.StdinPipe()
	}
	if err == nil {
		err = r.Host(waitingHost).Start(cmd)
	}
	if err != nil {
		return nil, errors.Join(err, w.log.Close())
	}
	go func() {
		defer close(w.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			what, at, _ := strings.Cut(lines.Text(), " ")
			if ns, err := strconv.ParseInt(at, 10, 64); err == nil {
				w.happened(what, ns, nil)
			}
		}
		w.happened("", 0, errors.New("the client on vsomeip has ended"))
	}()
	return w, nil
}

func (w *vsomeipWaiter) close() error {
	_ = w.in.Close() // it ends then
	<-w.done
	return errors.Join(w.cmd.Wait(), w.log.Close())
}

func (w *vsomeipWaiter) answered(ctx context.Context, since int64) (int64, error) {
	return w.await(ctx, answered, since)
}

func (w *vsomeipWaiter) event(ctx context.Context, since int64) (int64, error) {
	return w.await(ctx, event, since)
}

func (w *vsomeipWaiter) gone(ctx context.Context) error {
	w.mu.Lock()
	since := w.last[answered]
	w.mu.Unlock()
	_, err := w.await(ctx, gone, since)
	return err
}
