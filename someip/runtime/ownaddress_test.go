package runtime_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/sd"
	"carisma.dev/gateway/someip/someiptest"
)

// logged is a log that is written and read at once.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A stack that is started later at the address and port of ours, as the system lets
// stacks that share it, is noticed by what it says, and named.
func TestLaterStackAtOurAddress(t *testing.T) { // RB-9
	d := someiptest.NewDomain(t)
	log := &logged{}
	cfg := d.Config(1)
	stack, err := runtime.Start(runtime.Config{
		Networks: []runtime.NetworkConfig{cfg}, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, stack.Close()) }()
	n := stack.Network(cfg.Name)
	_, err = n.Offer(service(newServer()))
	require.NoError(t, err)
	c := client(t, d.Start(2))
	available(t, c, true) // our own offers were heard
	require.NotContains(t, log.String(), "sd.own_address")

	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		cerr := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
			if err == nil {
				err = unix.SetsockoptInet4Addr(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_IF, d.Addr(1).As4())
			}
		})
		if err == nil {
			err = cerr
		}
		return err
	}}
	other, err := lc.ListenPacket(context.Background(), "udp4", d.SD(1).String())
	require.NoError(t, err)
	defer other.Close()
	hello, err := (&sd.Message{Session: 77}).Append(nil)
	require.NoError(t, err)
	group := net.UDPAddrFromAddrPort(netip.AddrPortFrom(d.Group, d.Port))
	eventually(t, func() bool {
		_, _ = other.WriteTo(hello, group)
		return strings.Contains(log.String(), "sd.own_address")
	}, "it is told")
	require.Contains(t, log.String(), strconv.Itoa(os.Getpid()), "who it is")
}
