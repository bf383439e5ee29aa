package endpoint

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestPresence(t *testing.T) {
	prefix, host := netip.MustParsePrefix, netip.MustParseAddr
	var s linkState
	step := func(c linkChange, own, iface string, want Presence) {
		t.Helper()
		s.apply(c)
		require.Equal(t, want, s.presence(host(own), iface))
	}
	step(linkChange{kind: addressSet, index: 2, addr: prefix("10.1.0.1/24")}, "10.1.0.1", "", Down) // news of the link come later
	step(linkChange{kind: linkSet, index: 2, name: "eth0", running: true}, "10.1.0.1", "", Up)
	step(linkChange{}, "10.1.0.2", "", Absent)
	step(linkChange{}, "10.1.0.1", "eth1", Absent)
	step(linkChange{kind: linkSet, index: 2, name: "eth0"}, "10.1.0.1", "eth0", Down)
	step(linkChange{kind: linkSet, index: 3, name: "eth1", running: true}, "fe80::1%eth1", "", Absent)
	step(linkChange{kind: addressSet, index: 2, addr: prefix("fe80::1/64")}, "fe80::1%eth1", "", Absent)
	step(linkChange{kind: addressSet, index: 3, addr: prefix("fe80::1/64")}, "fe80::1%eth1", "", Up)
	step(linkChange{}, "fe80::1", "", Up) // one of the two is
	step(linkChange{kind: addressGone, index: 3, addr: prefix("fe80::1/64")}, "fe80::1%eth1", "", Absent)
	step(linkChange{kind: linkGone, index: 2}, "10.1.0.1", "", Absent)
	step(linkChange{kind: addressGone, index: 99, addr: prefix("10.1.0.1/24")}, "10.1.0.1", "", Absent)
	step(linkChange{kind: linkSet, index: 1, name: "lo", running: true, loopback: true}, "127.0.0.1", "", Absent)
	step(linkChange{kind: addressSet, index: 1, addr: prefix("127.0.0.1/8")}, "127.9.9.9", "", Up)
	step(linkChange{kind: addressSet, index: 1, addr: prefix("::1/128")}, "::2", "", Absent)
	step(linkChange{kind: linkReset}, "127.0.0.1", "", Absent)
	require.Equal(t, "absent down up", Absent.String()+" "+Down.String()+" "+Up.String())
}

func dumps(tb testing.TB) (dumps [][]byte) {
	tb.Helper()
	for _, request := range []int{unix.RTM_GETLINK, unix.RTM_GETADDR} {
		b, err := syscall.NetlinkRIB(request, unix.AF_UNSPEC)
		require.NoError(tb, err)
		dumps = append(dumps, b)
	}
	return dumps
}

// Whatever is cut off says less, and never something else.
func TestParseLinksTruncated(t *testing.T) {
	for _, b := range dumps(t) {
		all := parseLinks(nil, b)
		require.NotEmpty(t, all)
		for n := range b {
			part := parseLinks([]linkChange{}, b[:n:n])
			require.Equal(t, all[:len(part)], part)
		}
	}
}

func FuzzParseLinks(f *testing.F) {
	for _, b := range dumps(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s linkState
		changes := parseLinks(nil, b)
		require.LessOrEqual(t, len(changes), len(b)/unix.NLMSG_HDRLEN)
		for _, c := range changes {
			s.apply(c)
			require.True(t, c.kind == linkSet || c.kind == linkGone || c.addr.IsValid())
		}
		s.presence(netip.MustParseAddr("127.0.0.1"), "")
	})
}

func TestParseSocket(t *testing.T) {
	for line, want := range map[string]boundSocket{
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode": {},
		" 1: 0100007F:771A 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0": {
			netip.MustParseAddrPort("127.0.0.1:30490"), "4711", false,
		},
		" 1: B80D0120000000000000000001000000:771A 0:0 0A 0:0 0:0 0 0 0 12": {
			netip.MustParseAddrPort("[2001:db8::1]:30490"), "12", true,
		},
		" 1: 0000000000000000FFFF00000100007F:771A 0:0 0A 0:0 0:0 0 0 0 12": {
			netip.MustParseAddrPort("127.0.0.1:30490"), "12", true,
		},
		" 1: 01007F:771A 0:0 0A 0:0 0:0 0 0 0 12":    {},
		" 1: 0100007F:1771A 0:0 0A 0:0 0:0 0 0 0 12": {},
		" 1: 0100007F 0:0 0A 0:0 0:0 0 0 0 12":       {},
	} {
		got, ok := parseSocket(line)
		require.Equal(t, want.local.IsValid(), ok, line)
		require.Equal(t, want, got, line)
	}
}

func FuzzParseSocket(f *testing.F) {
	f.Add(" 1: 0100007F:771A 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0")
	f.Fuzz(func(t *testing.T, line string) {
		s, ok := parseSocket(line)
		require.Equal(t, ok, s.local.IsValid())
	})
}
