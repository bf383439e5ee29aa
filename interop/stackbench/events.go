package stackbench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// burstCount is the number of events that are sent at once.
const burstCount = 30000

// Arrivals are what came of events.
type Arrivals struct {
	Rate    float64 `json:"events_per_s"` // between the first and the last
	Lost    int     `json:"lost"`
	Dropped uint64  `json:"dropped"` // by the kernel for want of room, as it counts them
}

// tally counts arrivals on one goroutine and tells another when all came.
type tally struct {
	mu          sync.Mutex
	first, last time.Time
	count       int
}

func (t *tally) add(n int) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == 0 {
		t.first = now
	}
	t.count += n
	t.last = now
}

// wait waits until all have come, or none for half a second.
func (t *tally) wait(ctx context.Context, total int) (Arrivals, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		t.mu.Lock()
		count, first, last := t.count, t.first, t.last
		t.mu.Unlock()
		if count == total || count > 0 && time.Since(last) > 500*time.Millisecond {
			return Arrivals{Rate: float64(count-1) / last.Sub(first).Seconds(), Lost: total - count}, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return Arrivals{}, ctx.Err()
		}
	}
}

// ownEvents has our service send events to our client.
func (w *world) ownEvents(ctx context.Context, instance uint16, f FloodRequest) (Arrivals, error) {
	c, n, closeStack, err := w.use(ctx, instance)
	if err != nil {
		return Arrivals{}, err
	}
	var t tally
	active := make(chan struct{}, 1)
	_, err = c.Subscribe(ctx, runtime.SubscribeConfig{
		Eventgroup: 1, Events: []uint16{Event}, Unreliable: true,
		OnEvent: func(runtime.Notification) { t.add(1) },
		OnState: func(s runtime.SubscriptionStatus) {
			if s.State == runtime.SubscriptionActive {
				select {
				case active <- struct{}{}:
				default: // again, and nobody waits
				}
			}
		},
	})
	var a Arrivals
	if err == nil {
		select {
		case <-active:
			_, err = c.Call(ctx, Flood, false, f.append())
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err == nil {
		a, err = t.wait(ctx, int(f.Count))
	}
	a.Dropped = n.Stats().ReceiveDropped
	return a, errors.Join(err, closeStack())
}

// floorPort is where the bare datagrams go.
const floorPort = 30901

// bareEvents receives by recvmmsg what another process sends by sendmmsg: as many
// bytes as an event has.
func (w *world) bareEvents(ctx context.Context, size int) (a Arrivals, err error) {
	at := netip.AddrPortFrom(clientAddr, floorPort)
	var conn *net.UDPConn
	if err := w.client.Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
		return err
	}); err != nil {
		return a, err
	}
	if err := forceBuffer(conn); err != nil {
		return a, errors.Join(err, conn.Close())
	}
	var t tally
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		packets := ipv4.NewPacketConn(conn)
		messages := make([]ipv4.Message, 32)
		for i := range messages {
			messages[i].Buffers = [][]byte{make([]byte, 2048)}
		}
		for {
			n, err := packets.ReadBatch(messages, 0)
			if err != nil {
				return // closed
			}
			t.add(n)
		}
	}()
	defer func() {
		err = errors.Join(err, conn.Close())
		<-ended
	}()
	p, err := w.serve(ctx, "bench-peer", "flood", at.String(), strconv.Itoa(size+someip.HeaderSize), strconv.Itoa(burstCount))
	if err != nil {
		return a, err
	}
	defer p.end()
	if _, err := p.in.Write([]byte("go\n")); err != nil {
		return a, err
	}
	return t.wait(ctx, burstCount)
}

// forceBuffer gives a socket the receive buffer that the runtime has.
func forceBuffer(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 2<<20))
	})
	if err = errors.Join(err, failed); err != nil { // only root may
		return conn.SetReadBuffer(2 << 20)
	}
	return nil
}

// vsomeipEvents has vsomeip send events to vsomeip.
func (w *world) vsomeipEvents(ctx context.Context) (Arrivals, error) {
	var t struct {
		Expected int     `json:"expected"`
		Events   int     `json:"events"`
		Rate     float64 `json:"events_per_s"`
	}
	if err := w.runClient(ctx, &t, "--burst", strconv.Itoa(burstCount)); err != nil {
		return Arrivals{}, fmt.Errorf("burst: %w", err)
	}
	return Arrivals{Rate: t.Rate, Lost: t.Expected - t.Events}, nil
}
