package endpoint_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"carisma.dev/gateway/someip/endpoint"
)

// UDP-8, NET-3: unless told otherwise the receive buffer is of 1 MiB at least, where
// the system grants it, and multicast stays on the link.
func TestDefaultsOfUDP(t *testing.T) {
	require.GreaterOrEqual(t, endpoint.DefaultReceiveBuffer, 1<<20)
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr("127.0.11.1:0")})
	require.NoError(t, err)
	defer u.Close()
	requireOption(t, u, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 1)
	receive, _ := u.Buffers()
	if os.Geteuid() == 0 { // who may exceed the limit of the system
		require.Equal(t, endpoint.DefaultReceiveBuffer, receive)
	}
	require.Positive(t, receive)
}
