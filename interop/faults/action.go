package faults

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"google.golang.org/grpc"

	"carisma.dev/gateway/interop/faults/record"
	"carisma.dev/gateway/interop/wait"
	"carisma.dev/gateway/vehicles/hosts"
	"carisma.dev/gateway/vehicles/run"
)

// times are when a scenario did what.
type times struct {
	began, fault, repair, ended time.Time
	started                     time.Time // the last start, be it late
}

// do does one step. Steps that open streams or calls of their own return what is
// wrong with them.
func (g *Rig) do(ctx context.Context, s *Step, t *times, r *Result) error {
	name, _ := s.action()
	now := time.Now()
	switch name {
	case "wait", "calm", "call", "connected", "settled", "balanced", "add", "remove":
	case "start", "thaw", "plug", "add_address":
		t.started = now
		if !s.Late {
			t.repair = now
		}
	default:
		if t.fault.IsZero() {
			t.fault = now
		}
	}
	switch name {
	case "wait":
		return wait.For(ctx, s.Wait)
	case "calm":
		return g.calm(ctx, s.Calm)
	case "connected":
		return g.connected(ctx, s, t.started, r)
	case "kill":
		return g.kill(g.resolve(s.Kill))
	case "freeze":
		return g.freeze(g.resolve(s.Freeze))
	case "thaw":
		return g.thaw(g.resolve(s.Thaw))
	case "stop":
		return g.process(g.resolve(s.Stop), (*run.Process).Stop)
	case "start":
		return g.process(g.resolve(s.Start), (*run.Process).Start)
	case "add":
		return g.add(ctx, s.Add)
	case "remove":
		return g.remove(ctx, s.Leave)
	case "balanced":
		return g.balanced(ctx, s.Balanced, r)
	case "settled":
		return g.settled(ctx, s.Settled, t.fault)
	case "unplug":
		return g.link(s.Unplug, false)
	case "plug":
		return g.link(s.Plug, true)
	case "remove_address":
		return g.address(s.Remove, netlink.AddrDel)
	case "add_address":
		return g.address(s.Address, netlink.AddrAdd)
	case "wipe":
		return os.RemoveAll(filepath.Join(g.state(s.Wipe), "central"))
	case "call":
		return g.once(ctx, s.Call)
	case "slow":
		return g.slow(ctx, s.Slow)
	default:
		return g.many(ctx, s.Many)
	}
}

func (g *Rig) process(name string, do func(*run.Process) error) error {
	p := g.runner.Process(name)
	if p == nil {
		return fmt.Errorf("there is no program %q", name)
	}
	return do(p)
}

// kill kills a program of the vehicle, or a proxy, which is a child of its
// gateway and starts again by that.
func (g *Rig) kill(name string) error {
	if !strings.HasSuffix(name, "/envoy") {
		return g.process(name, (*run.Process).Kill)
	}
	return g.signal(name, syscall.SIGKILL)
}

func (g *Rig) freeze(name string) error {
	pid, err := g.pid(name)
	if err == nil {
		g.frozen[name] = pid
	}
	return errors.Join(err, g.signal(name, syscall.SIGSTOP))
}

func (g *Rig) thaw(name string) error {
	err := g.signal(name, syscall.SIGCONT)
	delete(g.frozen, name)
	return err
}

func (g *Rig) signal(name string, s syscall.Signal) error {
	pid, err := g.pid(name)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, s); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (g *Rig) link(p *Plug, up bool) error { return g.runner.Host(p.Host).SetLink(p.Network, up) }

func (g *Rig) address(p *Plug, change func(netlink.Link, *netlink.Addr) error) error {
	n := g.runner.Vehicle().Network(p.Network)
	addr := netip.PrefixFrom(g.runner.Addr(p.Host, p.Network), n.Subnet.Bits())
	return g.runner.Host(p.Host).Do(func() error {
		link, err := netlink.LinkByName(hosts.DeviceName(p.Network))
		if err != nil {
			return err
		}
		parsed, err := netlink.ParseAddr(addr.String())
		if err != nil {
			return err
		}
		return change(link, parsed)
	})
}

func (g *Rig) once(ctx context.Context, c *Once) error {
	conn, err := g.conn(c.Host)
	if err != nil {
		return err
	}
	return invoke(ctx, conn, c.Authority, c.Method, c.Number, c.Timeout)
}

func invoke(ctx context.Context, conn *grpc.ClientConn, authority, method string, number uint32, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	in, out := request(number), []byte(nil)
	return conn.Invoke(ctx, method, &in, &out, grpc.CallAuthority(authority))
}

// many makes calls that are all outstanding at once, over a connection of their
// own. Each of them must be answered.
func (g *Rig) many(ctx context.Context, m *Many) error {
	conn, err := dial(g.runner, m.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	errs := make([]error, m.Count)
	var wg sync.WaitGroup
	for i := range m.Count {
		wg.Go(func() { errs[i] = invoke(ctx, conn, m.Authority, m.Method, m.Number, m.Timeout) })
	}
	wg.Wait()
	failed := 0
	for _, e := range errs {
		if e != nil {
			failed++
			err = e
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d outstanding calls failed, one with: %w", failed, m.Count, err)
	}
	return nil
}

// slow opens a stream of its own and reads nothing for a time. What it then reads
// must account for every item: it came, or the next one says that it did not.
func (g *Rig) slow(ctx context.Context, s *Slow) error {
	conn, err := dial(g.runner, s.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := openStream(ctx, conn, s.Authority, s.Method)
	if err != nil {
		return err
	}
	if s.Burst > 0 {
		// The load that watches the same has subscribed at the ECU already.
		if _, err := stream.Header(); err != nil {
			return err
		}
		if err := g.once(ctx, &Once{Host: s.Host, Authority: s.Authority, Method: "/faults.v1.Probe/Burst", Number: s.Burst, Timeout: callTimeout}); err != nil {
			return err
		}
	}
	if err := wait.For(ctx, s.Asleep); err != nil {
		return err
	}
	timer := time.AfterFunc(slowTimeout, cancel)
	defer timer.Stop()
	return account(stream, s)
}

// slowTimeout bounds how long a watcher that woke up has to read what is new.
const slowTimeout = 10 * time.Second

// account reads until the stream is where it is without a slow reader: at the end
// of the burst, or at items that come as they are made.
func account(stream grpc.ClientStream, s *Slow) error {
	var last record.Turn
	for n := 0; ; n++ {
		var msg []byte
		asked := time.Now()
		if err := stream.RecvMsg(&msg); err != nil {
			return fmt.Errorf("after %d items, the last one %d: %w", n, last.Number, err)
		}
		turn, err := parseItem(msg)
		if err != nil {
			return err
		}
		if (n > 0 || s.Burst > 0) && turn.Number != last.Number+1+turn.Gap {
			return fmt.Errorf("item %d follows %d and tells a gap of %d", turn.Number, last.Number, turn.Gap)
		}
		last = turn
		live := s.Burst == 0 && n > 0 && time.Since(asked) > readInterval/10
		if live || s.Burst > 0 && turn.Number == s.Burst {
			return nil
		}
	}
}
