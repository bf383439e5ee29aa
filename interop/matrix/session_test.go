package matrix_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"carisma.dev/gateway/interop/judge"
	"carisma.dev/gateway/interop/matrix"
	"carisma.dev/gateway/vehicles/hosts"
)

// asStack makes the test program play our stack instead of running tests.
const asStack = "CARISMA_MATRIX_STACK"

func TestMain(m *testing.M) {
	if os.Getenv(asStack) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := matrix.Stack(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// family is a version of IP and the addresses that the two hosts have with it.
type family struct {
	name                   string
	subnet                 netip.Prefix
	ours, theirs           netip.Addr
	discovery, eventsGroup string
}

var (
	ipv4 = family{
		"IPv4", netip.MustParsePrefix("10.77.1.0/24"), netip.MustParseAddr("10.77.1.1"), netip.MustParseAddr("10.77.1.2"),
		"224.244.77.9", "224.225.226.233",
	}
	ipv6 = family{
		"IPv6", netip.MustParsePrefix("fd00:77:1::/64"), netip.MustParseAddr("fd00:77:1::1"), netip.MustParseAddr("fd00:77:1::2"),
		"ff14::77:9", "ff14::226:233",
	}
)

const network = "net"

// session is two hosts, of which one runs our stack and the other that of a peer.
type session struct {
	*testing.T
	peer   peer
	role   matrix.Role // of the peer
	family family
	events []matrix.Event

	ourHost, theirHost *hosts.Host
	captures           map[string]*judge.Capture // by file
	n                  int                       // distinguishes payloads
	values             map[uint16]string         // of fields, since the server started
}

// newSession makes the two hosts, joined by a network.
func newSession(t *testing.T, p peer, role matrix.Role, f family) *session {
	t.Helper()
	s := &session{T: t, peer: p, role: role, family: f, events: p.events(role), values: map[uint16]string{}}
	s.hosts(map[string]netip.Addr{"ours": f.ours, "theirs": f.theirs})
	s.record(s.ourHost, hosts.DeviceName(network))
	return s
}

// newShared makes one host for both, which has two addresses.
func newShared(t *testing.T, p peer, role matrix.Role, f family) *session {
	t.Helper()
	s := &session{T: t, peer: p, role: role, family: f, events: p.events(role), values: map[uint16]string{}}
	s.hosts(map[string]netip.Addr{"theirs": f.theirs})
	s.ourHost = s.theirHost
	require.NoError(t, s.ourHost.Do(func() error {
		link, err := netlink.LinkByName(hosts.DeviceName(network))
		if err != nil {
			return err
		}
		second := &netlink.Addr{IPNet: &net.IPNet{
			IP: f.ours.AsSlice(), Mask: net.CIDRMask(f.subnet.Bits(), f.ours.BitLen()),
		}}
		if f.ours.Is6() {
			second.Flags = unix.IFA_F_NODAD // usable at once
		}
		return netlink.AddrAdd(link, second)
	}))
	s.record(s.ourHost, hosts.DeviceName(network)) // multicast
	s.record(s.ourHost, "lo")                      // unicast
	return s
}

func (s *session) hosts(addresses map[string]netip.Addr) {
	s.Helper()
	var specs []hosts.Spec
	for name, addr := range addresses {
		specs = append(specs, hosts.Spec{Name: name, Addresses: map[string]netip.Addr{network: addr}})
	}
	w, err := hosts.Namespaces([]hosts.Network{{Name: network, Subnet: s.family.subnet, Multicast: true}}, specs)
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, w.Close()) })
	s.ourHost, s.theirHost = w.Host("ours"), w.Host("theirs")
	for name := range addresses {
		s.awaitMulticast(w.Host(name))
	}
}

// record records what a device carries, from here on.
func (s *session) record(host *hosts.Host, device string) {
	s.Helper()
	file := filepath.Join(s.ArtifactDir(), device+".pcap")
	c, err := judge.Start(file, device, host.Do)
	require.NoError(s, err)
	if s.captures == nil {
		s.captures = map[string]*judge.Capture{}
	}
	s.captures[file] = c
	s.Cleanup(func() {
		if s.captures[file] != nil {
			_, _ = c.Stop()
		}
	})
}

// awaitMulticast waits for the route of multicast, which IPv6 has some time after its
// device came up.
func (s *session) awaitMulticast(h *hosts.Host) {
	s.Helper()
	to := netip.AddrPortFrom(netip.MustParseAddr(s.family.discovery), 9)
	if to.Addr().Is6() {
		to = netip.AddrPortFrom(to.Addr().WithZone(hosts.DeviceName(network)), to.Port())
	}
	require.Eventually(s, func() bool {
		conn, err := h.Dial(s.Context(), "udp", to.String())
		if err != nil {
			return false
		}
		_, err = conn.Write([]byte("?"))
		return errors.Join(err, conn.Close()) == nil
	}, patience, time.Millisecond)
}

// flags are those of a program, see the package.
func (s *session) flags(role matrix.Role, own, other netip.Addr) []string {
	groups := make([]string, len(s.events))
	for i, e := range s.events {
		groups[i] = strconv.Itoa(int(e.Group))
	}
	return []string{
		"--role", string(role), "--unicast", own.String(), "--prefix-len", strconv.Itoa(s.family.subnet.Bits()),
		"--peer", other.String(), "--device", hosts.DeviceName(network), "--sd-multicast", s.family.discovery,
		"--multicast", s.family.eventsGroup, "--groups", strings.Join(groups, ","),
	}
}

func (s *session) startOurs() *program {
	s.Helper()
	self, err := os.Executable()
	require.NoError(s, err)
	cmd := exec.Command(self, s.flags(s.role.Other(), s.family.ours, s.family.theirs)...)
	cmd.Env = append(os.Environ(), asStack+"=1")
	return start(s.T, s.ourHost, "our stack", cmd)
}

func (s *session) startTheirs() *program {
	s.Helper()
	command := append(s.peer.command, s.flags(s.role, s.family.theirs, s.family.ours)...)
	return start(s.T, s.theirHost, s.peer.name, exec.Command(command[0], command[1:]...))
}

// sides sorts two programs by what they do.
func (s *session) sides(ours, theirs *program) (server, client *program) {
	if s.role == matrix.Serve {
		return theirs, ours
	}
	return ours, theirs
}

// worked records that something did.
func (s *session) worked(what matrix.What, way ...string) {
	s.Helper()
	require.NoError(s, matrix.Record(matrix.Result{
		Peer: s.peer.name, Role: s.role, What: what, Way: strings.Join(append(way, s.family.name), " "), Test: s.Name(),
	}))
}

// payload returns bytes that no other message of the session has, in hexadecimal.
func (s *session) payload(size int) string {
	s.n++
	b := make([]byte, max(size, 4))
	for i := range b {
		b[i] = byte(i * s.n)
	}
	copy(b, []byte{0xC0, 0xFE, byte(s.n >> 8), byte(s.n)})
	return fmt.Sprintf("%x", b)
}

// judged ends the recording and has it judged.
func (s *session) judged() *judge.Report {
	s.Helper()
	all := &judge.Report{}
	for file, c := range s.captures {
		s.captures[file] = nil
		_, err := c.Stop()
		require.NoError(s, err)
		all.Messages = append(all.Messages, check(s.T, file).Messages...)
	}
	require.NotEmpty(s, all.Messages)
	return all
}

// check has tshark judge a file.
func check(t *testing.T, file string) *judge.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	report, err := judge.Check(ctx, file, judge.Ports{
		UDP: []uint16{matrix.SDPort, matrix.Port, matrix.MulticastPort}, TCP: []uint16{matrix.Port},
	})
	require.NoError(t, err)
	require.NoError(t, report.Err())
	return report
}

// counts reads what our stack says at its end.
func counts(t *testing.T, ours *program) (c matrix.Counts) {
	t.Helper()
	line := ours.until("stats ")
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(line, "stats ")), &c))
	return c
}
