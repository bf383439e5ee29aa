package matrix_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

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
	file               string
	capture            *judge.Capture
	n                  int               // distinguishes payloads
	values             map[uint16]string // of fields, since the server started
}

func newSession(t *testing.T, p peer, role matrix.Role, f family) *session {
	t.Helper()
	s := &session{T: t, peer: p, role: role, family: f, events: p.events(role), values: map[uint16]string{}}
	w, err := hosts.Namespaces(
		[]hosts.Network{{Name: network, Subnet: f.subnet, Multicast: true}},
		[]hosts.Spec{
			{Name: "ours", Addresses: map[string]netip.Addr{network: f.ours}},
			{Name: "theirs", Addresses: map[string]netip.Addr{network: f.theirs}},
		})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	s.ourHost, s.theirHost = w.Host("ours"), w.Host("theirs")
	s.file = filepath.Join(t.ArtifactDir(), "run.pcap")
	s.capture, err = judge.Start(s.file, hosts.DeviceName(network), s.ourHost.Do)
	require.NoError(t, err)
	t.Cleanup(func() {
		if s.capture != nil {
			_, _ = s.capture.Stop()
		}
	})
	return s
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
	c := s.capture
	s.capture = nil
	_, err := c.Stop()
	require.NoError(s, err)
	return check(s.T, s.file, s.family)
}

// check has tshark judge a file.
func check(t *testing.T, file string, f family) *judge.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	report, err := judge.Check(ctx, file, judge.Ports{
		UDP: []uint16{matrix.SDPort, matrix.Port, matrix.MulticastPort}, TCP: []uint16{matrix.Port},
	})
	require.NoError(t, err)
	require.NoError(t, report.Err())
	require.NotZero(t, report.Messages)
	return report
}

// counts reads what our stack says at its end.
func counts(t *testing.T, ours *program) (c matrix.Counts) {
	t.Helper()
	line := ours.until("stats ")
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(line, "stats ")), &c))
	return c
}
