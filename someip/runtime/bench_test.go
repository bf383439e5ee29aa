package runtime_test

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

// pair starts a server with the echo service and a client of it.
func pair(b *testing.B) (*runtime.Offering, *runtime.Client) {
	b.Helper()
	d := someiptest.NewDomain(b)
	o := offer(b, d.Start(1), newServer())
	c := client(b, d.Start(2))
	available(b, c, true)
	return o, c
}

func benchmarkCall(b *testing.B, reliable bool) {
	b.Helper()
	_, c := pair(b)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	payload := make([]byte, 8)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Call(ctx, echo, reliable, payload); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCallUDP is a round trip of 8 bytes; its floor is BenchmarkBareUDPEcho.
func BenchmarkCallUDP(b *testing.B) { benchmarkCall(b, false) }

func BenchmarkCallTCP(b *testing.B) { benchmarkCall(b, true) }

// BenchmarkCallsInFlight keeps 32 calls outstanding.
func BenchmarkCallsInFlight(b *testing.B) {
	_, c := pair(b)
	payload := make([]byte, 8)
	todo := make(chan struct{}, 32)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range todo {
				_, _ = c.Call(context.Background(), echo, false, payload)
			}
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		todo <- struct{}{}
	}
	close(todo)
	wg.Wait()
}

// BenchmarkBareUDPEcho is a round trip through two plain sockets.
func BenchmarkBareUDPEcho(b *testing.B) {
	open := func(host byte) *net.UDPConn {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 30, 0, host}), 0)))
		require.NoError(b, err)
		b.Cleanup(func() { c.Close() })
		return c
	}
	server, client := open(1), open(2)
	done := make(chan struct{})
	b.Cleanup(func() { server.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 2048)
		for {
			n, from, err := server.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			_, _ = server.WriteToUDPAddrPort(buf[:n], from)
		}
	}()
	to := server.LocalAddr().(*net.UDPAddr).AddrPort()
	buf := make([]byte, 2048)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = client.WriteToUDPAddrPort(buf[:24], to)
		_, _, _ = client.ReadFromUDPAddrPort(buf)
	}
}

// BenchmarkEvents sends events of 8 bytes to one subscriber and waits for each
// window of 64, so that none is lost.
func BenchmarkEvents(b *testing.B) {
	o, c := pair(b)
	const window = 64
	credit := make(chan struct{}, window)
	_, err := c.Subscribe(b.Context(), runtime.SubscribeConfig{
		Eventgroup: group, Events: []uint16{event}, OnEvent: func(runtime.Notification) { <-credit },
	})
	require.NoError(b, err)
	eventually(b, func() bool { return o.Subscribers(event) == 1 }, "subscribed")
	payload := make([]byte, 8)
	b.ReportAllocs()
	for b.Loop() {
		credit <- struct{}{}
		if err := o.Notify(event, payload); err != nil {
			b.Fatal(err)
		}
	}
	for range window {
		credit <- struct{}{} // all have arrived once the window can be filled
	}
}
