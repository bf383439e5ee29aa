package endpoint_test

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/endpoint"
)

func TestSendBatch(t *testing.T) {
	a, _ := listen(t, "127.0.11.1:0")
	b, atB := listen(t, "127.0.11.2:0")
	c, atC := listen(t, "127.0.11.3:0")
	var batch []endpoint.Datagram
	for i := range 50 { // two calls to each
		batch = append(batch,
			endpoint.Datagram{To: b.LocalAddr(), Data: fmt.Append(nil, i)},
			endpoint.Datagram{To: c.LocalAddr(), Data: fmt.Append(nil, -i)})
	}
	batch = append(batch, endpoint.Datagram{To: b.LocalAddr()}) // an empty one is one too
	n, err := a.SendBatch(batch)
	require.NoError(t, err)
	require.Equal(t, 101, n)
	for i := range 50 {
		require.Equal(t, fmt.Sprint(i), string(receive(t, atB).data))
		got := receive(t, atC)
		require.Equal(t, fmt.Sprint(-i), string(got.data))
		require.Equal(t, a.LocalAddr(), got.from)
	}
	require.Empty(t, receive(t, atB).data)
	n, err = a.SendBatch(nil)
	require.NoError(t, err)
	require.Zero(t, n)
}

// One subscriber that cannot be reached costs the others nothing.
func TestSendBatchLeavesOutWhatFails(t *testing.T) {
	a, _ := listen(t, "127.0.11.1:0")
	b, atB := listen(t, "127.0.11.2:0")
	good := func(s string) endpoint.Datagram { return endpoint.Datagram{To: b.LocalAddr(), Data: []byte(s)} }
	tooLong := endpoint.Datagram{To: b.LocalAddr(), Data: make([]byte, endpoint.MaxDatagram+1)}
	sixth := endpoint.Datagram{To: addr("[2001:db8::1]:1"), Data: []byte("x")}
	n, err := a.SendBatch([]endpoint.Datagram{tooLong, good("1"), sixth, {}, good("2"), tooLong})
	require.Error(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, "1", string(receive(t, atB).data))
	require.Equal(t, "2", string(receive(t, atB).data))

	closed, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.1:0")})
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	n, err = closed.SendBatch([]endpoint.Datagram{good("3"), good("4")})
	require.ErrorIs(t, err, net.ErrClosed)
	require.Zero(t, n)
}

func TestSendBatchIPv6(t *testing.T) {
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("[::1]:0")})
	if err != nil {
		t.Skipf("no IPv6 loopback: %v", err)
	}
	ch := serve(t, u)
	n, err := u.SendBatch([]endpoint.Datagram{{u.LocalAddr(), []byte("a")}, {u.LocalAddr(), []byte("b")}})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, "a", string(receive(t, ch).data))
	require.Equal(t, "b", string(receive(t, ch).data))
}

func TestSendBatchDoesNotAllocate(t *testing.T) {
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.1:0")})
	require.NoError(t, err)
	defer u.Close()
	done := make(chan struct{}, 100)
	u.Serve(func(netip.AddrPort, []byte) { done <- struct{}{} })
	batch := make([]endpoint.Datagram, 40)
	for i := range batch {
		batch[i] = endpoint.Datagram{To: u.LocalAddr(), Data: make([]byte, 24)}
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = u.SendBatch(batch)
		for range batch {
			<-done
		}
	}))
}

// What the kernel drops is known: nothing that was sent is unaccounted for.
func TestKernelDropsAreCounted(t *testing.T) {
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.1:0"), ReceiveBuffer: 8 << 10})
	require.NoError(t, err)
	defer u.Close()
	if u.Stats().DropsUnknown {
		t.Skip("the system does not tell what it drops (SO_RXQ_OVFL)")
	}
	sender, _ := listen(t, "127.0.11.2:0")
	batch := make([]endpoint.Datagram, 300)
	for i := range batch {
		batch[i] = endpoint.Datagram{To: u.LocalAddr(), Data: make([]byte, 1000)}
	}
	sent, err := sender.SendBatch(batch)
	require.NoError(t, err)
	require.Equal(t, endpoint.UDPStats{}, u.Stats())
	u.Serve(func(netip.AddrPort, []byte) {})
	require.Eventually(t, func() bool { // the count comes with a datagram that is received
		s := u.Stats()
		if s.Dropped > 0 && s.Received+s.Dropped == uint64(sent) {
			return true
		}
		if sender.Send(u.LocalAddr(), []byte("and now?")) == nil {
			sent++
		}
		return false
	}, patience, 5*time.Millisecond)
	require.Greater(t, u.Stats().Received, uint64(1))
}

// BenchmarkEvents sends from one socket to another as fast as it is received, one
// datagram a call and in batches.
func BenchmarkEvents(b *testing.B) {
	for _, size := range []int{1, 32} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			to, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.2:0")})
			require.NoError(b, err)
			defer to.Close()
			done := make(chan struct{}, 1)
			var n int
			to.Serve(func(netip.AddrPort, []byte) {
				if n++; n == 64 {
					n = 0
					done <- struct{}{}
				}
			})
			from, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.1:0")})
			require.NoError(b, err)
			defer from.Close()
			batch := make([]endpoint.Datagram, size)
			for i := range batch {
				batch[i] = endpoint.Datagram{To: to.LocalAddr(), Data: make([]byte, 24)}
			}
			b.ReportAllocs()
			for b.Loop() { // 64 datagrams
				for range 64 / size {
					_, _ = from.SendBatch(batch)
				}
				<-done
			}
			b.ReportMetric(float64(b.N)*64/b.Elapsed().Seconds(), "datagrams/s")
		})
	}
}
