package hosts_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/vehicles/hosts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLoopbackAddr(t *testing.T) {
	for in, want := range map[string]string{
		"10.77.1.2": "127.77.1.2", "192.168.1.2": "192.168.1.2", "fd00::1": "fd00::1", "127.0.0.1": "127.0.0.1",
	} {
		require.Equal(t, netip.MustParseAddr(want), hosts.LoopbackAddr(netip.MustParseAddr(in)), in)
	}
}

func TestLoopbackHostStartsPrograms(t *testing.T) {
	w, err := hosts.Loopback([]hosts.Spec{{Name: "a"}})
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	require.Nil(t, w.Host("b"))
	var out bytes.Buffer
	cmd := exec.Command("echo", "here")
	cmd.Stdout = &out
	require.NoError(t, w.Host("a").Start(cmd))
	require.NoError(t, cmd.Wait())
	require.Equal(t, "here\n", out.String())
	require.ErrorContains(t, w.Host("a").Start(exec.Command("/does/not/exist")), "host a:")
}

// Hosts on one network reach each other, hosts on another do not, a cable can
// be taken out.
func TestNamespaces(t *testing.T) {
	if !hosts.Permitted() {
		t.Skip("network namespaces are not permitted to this user")
	}
	networks := []hosts.Network{
		{Name: "backbone", Subnet: netip.MustParsePrefix("10.77.0.0/24")},
		{Name: "a-network-with-a-long-name", Subnet: netip.MustParsePrefix("10.77.1.0/24"), Multicast: true},
	}
	w, err := hosts.Namespaces(networks, []hosts.Spec{
		{Name: "center", Addresses: map[string]netip.Addr{"backbone": netip.MustParseAddr("10.77.0.1")}},
		{Name: "rear", Addresses: map[string]netip.Addr{
			"backbone": netip.MustParseAddr("10.77.0.2"), "a-network-with-a-long-name": netip.MustParseAddr("10.77.1.1"),
		}},
		{Name: "ecu", Addresses: map[string]netip.Addr{"a-network-with-a-long-name": netip.MustParseAddr("10.77.1.2")}},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	accept := listen(t, w.Host("rear"), "10.77.0.2:4000")
	conn, err := w.Host("center").Dial(ctx, "tcp", "10.77.0.2:4000")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, (<-accept).Close())

	_, err = w.Host("ecu").Dial(ctx, "tcp", "10.77.0.2:4000")
	require.ErrorContains(t, err, "unreachable")

	require.NoError(t, w.Host("rear").SetLink("backbone", false))
	_, err = w.Host("rear").Dial(ctx, "tcp", "10.77.0.1:4000")
	require.ErrorContains(t, err, "unreachable")
	require.NoError(t, w.Host("rear").SetLink("backbone", true))

	group := &net.UDPAddr{IP: net.IPv4(224, 244, 77, 9), Port: 30490}
	var receiver net.PacketConn
	require.NoError(t, w.Host("ecu").Do(func() error {
		device, err := net.InterfaceByName(hosts.DeviceName("a-network-with-a-long-name"))
		if err != nil {
			return err
		}
		receiver, err = net.ListenMulticastUDP("udp4", device, group)
		return err
	}))
	defer receiver.Close()
	sender, err := w.Host("rear").Dial(ctx, "udp4", group.String())
	require.NoError(t, err)
	defer sender.Close()
	var n int
	var from net.Addr
	buf := make([]byte, 16)
	// The bridge forwards once it has noticed that its ports are up: what is sent
	// before is lost.
	for {
		_, err = sender.Write([]byte("offer"))
		require.NoError(t, err)
		require.NoError(t, receiver.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		n, from, err = receiver.ReadFrom(buf)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		require.NoError(t, ctx.Err())
	}
	require.NoError(t, err)
	require.Equal(t, "offer", string(buf[:n]))
	require.Equal(t, "10.77.1.1", from.(*net.UDPAddr).IP.String())
}

// listen accepts one connection on the host.
func listen(t *testing.T, h *hosts.Host, address string) <-chan net.Conn {
	t.Helper()
	var lis net.Listener
	require.NoError(t, h.Do(func() (err error) {
		lis, err = net.Listen("tcp", address)
		return err
	}))
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := lis.Accept()
		if err == nil {
			accepted <- conn
		}
	}()
	t.Cleanup(func() { _ = lis.Close() })
	return accepted
}
