package matrix_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/matrix"
	"carisma.dev/gateway/interop/peers"
	"carisma.dev/gateway/vehicles/hosts"
)

// peer is a foreign stack and what it can do.
type peer struct {
	name    string
	command []string
	// serve and use are what it can do in each role.
	serve, use ability
}

// ability is what a stack can do in one role.
type ability struct {
	families   []family
	transports []string
	without    []matrix.What  // of the rest
	events     []matrix.Event // nil: all
	refuses    string         // code that it answers Refuse with
	unknown    bool           // answers requests for unknown methods
	astray     bool           // sends messages to ports that nobody has
	stuck      bool           // may not notice that a TCP connection is gone
	largest    int            // payload that it sends in one piece; 0: 1400
}

func (p peer) ability(role matrix.Role) ability {
	if role == matrix.Serve {
		return p.serve
	}
	return p.use
}

func (p peer) transports(role matrix.Role) []string { return p.ability(role).transports }

func (p peer) events(role matrix.Role) []matrix.Event {
	if events := p.ability(role).events; events != nil {
		return events
	}
	return matrix.Events
}

func (p peer) can(role matrix.Role, what matrix.What) bool {
	return !slices.Contains(p.ability(role).without, what)
}

// refuses is the code of the error that a client of the peer, or the peer as client,
// gets.
func (p peer) refuses(role matrix.Role) string { return p.ability(role).refuses }

func (p peer) answersUnknown(role matrix.Role) bool { return p.ability(role).unknown }

// needPeer makes a peer ready, and namespaces possible.
func needPeer(t *testing.T, name peers.Peer) string {
	t.Helper()
	path := peers.Need(t, name)[0]
	if !hosts.Permitted() {
		t.Skip("network namespaces are not permitted to this user")
	}
	return path
}

var (
	bothFamilies   = []family{ipv4, ipv6}
	bothTransports = []string{"udp", "tcp"}
)

// python is the command of a program of interop/python.
func python(t *testing.T, program string) []string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "python", program))
	require.NoError(t, err)
	return []string{needPeer(t, peers.Python), path}
}

// pysomeip has no TCP, TP, E2E nor multicast events. Its application may answer one
// error code only.
func pysomeip(t *testing.T) peer {
	t.Helper()
	scoped := ipv6
	scoped.discovery = "ff02::77:9" // its addresses have a zone, which the system takes with those of the link only
	some := ability{
		families: []family{ipv4, scoped}, transports: []string{"udp"}, without: []matrix.What{matrix.SegmentedCall, matrix.SecondAddress},
		events: []matrix.Event{matrix.EventUDP, matrix.FieldUDP}, unknown: true,
	}
	p := peer{name: "pysomeip", command: python(t, "pysomeip_peer.py"), serve: some, use: some}
	p.serve.refuses = "9" // as client it does not parse codes of applications
	return p
}

// someipy speaks IPv4 only and has methods and events, nothing beyond. It can serve
// one of the two only: its daemon fails on subscriptions to a service with methods.
func someipy(t *testing.T) (methods, events peer) {
	t.Helper()
	some := ability{
		families: []family{ipv4}, transports: bothTransports,
		without: []matrix.What{matrix.FireAndForget, matrix.SegmentedCall},
		events:  []matrix.Event{matrix.EventUDP, matrix.EventTCP},
	}
	methods = peer{name: "someipy", command: python(t, "someipy_peer.py"), serve: some, use: some}
	events = peer{name: methods.name, command: methods.command, serve: some}
	methods.use.stuck = true // of one that is reset just when it was opened
	methods.serve.events, methods.serve.refuses = []matrix.Event{}, "1"
	events.serve.transports = nil
	events.serve.astray = true // each event to the subscribers of all eventgroups, by UDP to a TCP port too
	return methods, events
}

// opensomeip has methods only, in its binding, on one transport at a time. On UDP it
// segments what exceeds 1400 bytes with its header.
func opensomeip(t *testing.T) (udp, tcp peer) {
	t.Helper()
	some := ability{
		families: []family{ipv4}, transports: []string{"udp"},
		events: []matrix.Event{}, largest: 1384,
	}
	udp = peer{name: "opensomeip", command: python(t, "opensomeip_peer.py"), serve: some, use: some}
	udp.serve.refuses = "1" // as client it does not know codes of applications
	udp.use.unknown = true
	tcp = udp
	tcp.command = append(slices.Clone(udp.command), "--transport", "tcp")
	tcp.serve = ability{} // it offers UDP only
	tcp.use.transports = []string{"tcp"}
	tcp.use.without = []matrix.What{matrix.SegmentedCall, matrix.OursKilled, matrix.TheirsKilled}
	return udp, tcp
}

// vsomeip can do everything. It leaves unknown methods to its application, and what
// is not there stays without answer.
func vsomeip(t *testing.T) peer {
	t.Helper()
	full := ability{families: bothFamilies, transports: bothTransports, refuses: "21"}
	p := peer{name: "vsomeip", serve: full, use: full}
	p.use.unknown = true
	p.command = []string{filepath.Join(needPeer(t, peers.Vsomeip), "matrix_peer")}
	return p
}
