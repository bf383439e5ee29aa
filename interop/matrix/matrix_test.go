package matrix_test

import (
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/judge"
	"carisma.dev/gateway/interop/matrix"
	"carisma.dev/gateway/someip"
)

func TestVsomeip(t *testing.T) { run(t, vsomeip(t)) }

func TestPysomeip(t *testing.T) { run(t, pysomeip(t)) }

func TestSomeipy(t *testing.T) {
	methods, events := someipy(t)
	t.Run("methods", func(t *testing.T) { run(t, methods) })
	t.Run("events", func(t *testing.T) { run(t, events) })
}

func TestOpensomeip(t *testing.T) {
	udp, tcp := opensomeip(t)
	t.Run("UDP", func(t *testing.T) { run(t, udp) })
	t.Run("TCP", func(t *testing.T) { run(t, tcp) })
}

// run does the cells of one peer. CI does those of IPv4 and of the peer as server,
// without restarts.
func run(t *testing.T, p peer) {
	t.Helper()
	for _, role := range []matrix.Role{matrix.Serve, matrix.Use} {
		for _, f := range p.ability(role).families {
			name := string(role) + "/" + f.name
			if os.Getenv("CI") == "true" && (role == matrix.Use || f.name == ipv6.name) {
				t.Run(name, func(t *testing.T) { t.Skip("CI runs the peer as server on IPv4; make interop all") })
				continue
			}
			t.Run(name+"/ours first", func(t *testing.T) { oursFirst(newSession(t, p, role, f)) })
			if p.can(role, matrix.OursKilled) {
				t.Run(name+"/restarts", func(t *testing.T) { restarts(newSession(t, p, role, f)) })
			}
			if p.can(role, matrix.SecondAddress) {
				t.Run(name+"/second address", func(t *testing.T) { secondAddress(newShared(t, p, role, f)) })
			}
		}
	}
}

// oursFirst starts our stack ahead of the peer, so that it hears every message.
func oursFirst(s *session) {
	counted(s)
	s.worked(matrix.OursFirst)
}

// secondAddress does the same where both are in one namespace (RB-9).
func secondAddress(s *session) {
	counted(s)
	s.worked(matrix.SecondAddress)
}

// counted does all that the two sides can, and has tshark count: our stack has sent
// and received just what it says.
func counted(s *session) {
	ours := s.startOurs()
	theirs := s.startTheirs()
	server, client := s.sides(ours, theirs)
	s.all(server, client)
	theirs.stop()
	if client == ours {
		client.until("down") // the peer withdraws what it offers
	}
	ours.stop()
	c := counts(s.T, ours)
	report := s.judged()

	sent := func(m judge.Message) bool { return m.Source.Addr() == s.family.ours }
	require.Zero(s, c.Bad)
	require.EqualValues(s, whole(report, sent), c.Sent+c.SDSent, "sent")
	received := whole(report, func(m judge.Message) bool { return !sent(m) })
	if s.peer.ability(s.role).astray {
		require.GreaterOrEqual(s, uint64(received), c.Received+c.SDReceived, "received")
	} else {
		require.EqualValues(s, received, c.Received+c.SDReceived, "received")
	}
	for _, e := range s.events {
		toGroup := report.Count(func(m judge.Message) bool { return m.Method == e.ID && m.Dest.Addr().IsMulticast() })
		require.Equal(s, e.Multicast, toGroup > 0, "events %04x by multicast: %d", e.ID, toGroup)
	}
}

// restarts starts the peer first, kills the server and then the client, and starts
// them again.
func restarts(s *session) {
	theirs := s.startTheirs()
	ours := s.startOurs()
	server, client := s.sides(ours, theirs)
	client.until("up")
	s.again(server, client)
	s.worked(matrix.TheirsFirst)
	for _, role := range []matrix.Role{matrix.Serve, matrix.Use} {
		if role == matrix.Serve {
			clear(s.values)
		}
		if role == s.role {
			theirs.kill()
			theirs = s.startTheirs()
		} else {
			ours.kill()
			ours = s.startOurs()
		}
		server, client = s.sides(ours, theirs)
		s.again(server, client)
		if role == s.role {
			s.worked(matrix.TheirsKilled)
		} else {
			s.worked(matrix.OursKilled)
		}
	}
	theirs.stop()
	ours.stop()
	s.judged()
}

// whole counts messages; the segments of one are one.
func whole(r *judge.Report, match func(judge.Message) bool) int {
	type segmented struct {
		source                           netip.AddrPort
		service, method, client, session uint16
		kind                             byte
	}
	seen := map[segmented]bool{}
	return r.Count(func(m judge.Message) bool {
		if !match(m) {
			return false
		}
		if someip.MessageType(m.Type)&someip.FlagTP == 0 {
			return true
		}
		k := segmented{m.Source, m.Service, m.Method, m.Client, m.Session, m.Type}
		first := !seen[k]
		seen[k] = true
		return first
	})
}
