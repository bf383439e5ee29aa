package endpoint_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"carisma.dev/gateway/someip/endpoint"
)

// Another stack may have the group with SO_REUSEADDR alone, or with SO_REUSEPORT
// alone. We can be beside both, and each hears every datagram: the group of
// SO_REUSEPORT shares nothing out. RB-9.
func TestGroupBesideOtherStacks(t *testing.T) {
	for name, opt := range map[string]int{"SO_REUSEADDR": unix.SO_REUSEADDR, "SO_REUSEPORT": unix.SO_REUSEPORT} {
		t.Run(name, func(t *testing.T) {
			group := netip.MustParseAddrPort("239.193.9.77:30477")
			lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
				var err error
				return errors.Join(c.Control(func(fd uintptr) {
					mreq := &unix.IPMreqn{Multiaddr: group.Addr().As4(), Address: [4]byte{127, 0, 11, 52}}
					err = errors.Join(
						unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 0),
						unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, opt, 1),
						unix.SetsockoptIPMreqn(int(fd), unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, mreq),
					)
				}), err)
			}}
			theirs, err := lc.ListenPacket(context.Background(), "udp4", group.String())
			require.NoError(t, err)
			defer theirs.Close()

			ours, heard := groups(t, endpoint.UDPConfig{Local: addr("127.0.11.51:0")})
			require.NoError(t, ours.Join(group))
			from, _ := listen(t, "127.0.11.53:0")
			warmUp(t, from, group, heard)
			for i := range byte(20) {
				require.NoError(t, from.Send(group, []byte{'#', i}))
			}
			require.NoError(t, theirs.SetReadDeadline(time.Now().Add(patience)))
			b := make([]byte, 10)
			for i := range byte(20) {
				require.Equal(t, string([]byte{'#', i}), receive(t, heard).data)
				for { // behind what warmed up
					n, _, err := theirs.ReadFrom(b)
					require.NoError(t, err)
					if b[0] == '#' {
						require.Equal(t, []byte{'#', i}, b[:n])
						break
					}
				}
			}
		})
	}
}
