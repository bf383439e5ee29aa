package matrix_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/judge"
	"carisma.dev/gateway/interop/matrix"
)

// forge is scapy: it serves and uses nothing, but sends what it is told to.
func forge(t *testing.T, role matrix.Role) *session {
	t.Helper()
	return newSession(t, peer{
		name: "scapy", command: python(t, "scapy_forge.py"),
		serve: ability{events: []matrix.Event{matrix.EventUDP}}, use: ability{events: []matrix.Event{matrix.EventUDP}},
	}, role, ipv4)
}

// got is what scapy dissects of an answer of ours.
func got(method uint16, kind, code, payload string) string {
	p := "-"
	if payload != "" {
		p = hex.EncodeToString([]byte(payload))
	}
	return strings.Join([]string{"got", id(matrix.Service), id(method), kind, code, p}, " ")
}

const (
	acked  = "got sd 7 1 5"
	nacked = "got sd 7 1 0"
)

// forged are datagrams that scapy makes and what our service answers; it ignores the
// others.
var forged = []struct {
	socket, name string
	answers      []string
}{
	{"data", "one", []string{got(matrix.Echo, "80", "0", "one")}},
	{"data", "two in a datagram, unaligned", []string{got(matrix.Echo, "80", "0", "123"), got(matrix.Echo, "80", "0", "four")}},
	{"data", "three in a datagram", []string{
		got(matrix.Echo, "80", "0", "1"), got(matrix.Echo, "80", "0", "22"), got(matrix.Echo, "80", "0", "333"),
	}},
	{"data", "junk behind", []string{got(matrix.Echo, "80", "0", "good")}},
	{"data", "length 0", nil},
	{"data", "length 7", nil},
	{"data", "length beyond the datagram", nil},
	{"data", "length huge", nil},
	{"data", "cut header", nil},
	{"data", "empty datagram", nil},
	{"data", "wrong protocol version", []string{got(matrix.Echo, "81", "7", "")}},
	{"data", "wrong interface version", []string{got(matrix.Echo, "81", "8", "")}},
	{"data", "wrong interface version, unknown method", []string{got(0x99, "81", "8", "")}},
	{"data", "unknown service", []string{"got 6999 1 81 2 -"}},
	{"data", "unknown method", []string{got(0x99, "81", "3", "")}},
	{"data", "acknowledged request", nil},
	{"data", "unknown type", nil},
	{"data", "response that nobody waits for", nil},
	{"data", "segment of a method without TP", nil},
	{"sd", "find", []string{"got sd 1 0 3 30700"}},
	{"sd", "subscribe", []string{acked}},
	{"sd", "stop subscribe", nil},
	{"sd", "subscribe, unknown option", []string{acked}},
	{"sd", "subscribe, unknown entry", []string{acked}},
	{"sd", "subscribe, options of a stranger", []string{acked}},
	{"sd", "find and subscribe in a datagram", []string{"got sd 1 0 3 30700", acked}},
	{"sd", "subscribe, unknown group", []string{"got sd 7 2457 0"}},
	{"sd", "subscribe, wrong major", []string{nacked}},
	{"sd", "subscribe without endpoint", []string{nacked}},
	{"sd", "subscribe, index out of range", []string{nacked}},
	{"sd", "subscribe, option of length 8", []string{nacked}},
	{"sd", "entries that are no multiple of 16", nil},
	{"sd", "entries beyond the message", nil},
	{"sd", "options beyond the message", nil},
	{"sd", "cut entry", nil},
	{"sd", "discovery of another version", nil},
}

// Our service gets datagrams, legal and not, that scapy makes. After each one it still
// answers, and scapy dissects every answer.
func TestForgedToService(t *testing.T) {
	s := forge(t, matrix.Use)
	ours := s.startOurs()
	scapy := s.startTheirs()
	for _, f := range forged {
		scapy.say(f.socket, f.name)
		for _, answer := range f.answers {
			_, ok := scapy.await(answer, patience)
			require.True(t, ok, "%s: no %q", f.name, answer)
		}
		// The service is there and has nothing more to say: its answers come in order.
		scapy.say("data", "one")
		scapy.until(got(matrix.Echo, "80", "0", "one"))
		line, more, _ := scapy.take("got")
		require.False(t, more, "%s: %s", f.name, line)
	}
	for _, name := range []string{"segments", "segments in reverse", "segments, shuffled", "segments, doubled"} {
		scapy.say("data", name)
		for _, size := range []int{1392, 1392, 1392, 824} {
			line := scapy.until(strings.Join([]string{"got", id(matrix.Service), id(matrix.EchoLarge), "a0", "0"}, " "))
			payload := line[strings.LastIndexByte(line, ' ')+1:]
			require.Len(t, payload, 2*(size+4), "%s: segment with its header", name)
		}
	}
	ours.stop()
	c := counts(t, ours)
	require.NotZero(t, c.Bad)
	require.True(t, ours.cmd.ProcessState.Success())

	// tshark and scapy see the same messages of ours and have nothing against them.
	files := slices.Collect(maps.Keys(s.captures))
	_, err := s.captures[files[0]].Stop()
	require.NoError(t, err)
	s.captures[files[0]] = nil
	report, err := judge.Check(t.Context(), files[0], judge.Ports{UDP: []uint16{matrix.SDPort, matrix.Port}})
	require.NoError(t, err)
	sent := func(m judge.Message) bool { return m.Source.Addr() == s.family.ours }
	require.EqualValues(t, whole(report, sent), c.Sent+c.SDSent)
	for _, f := range slices.Concat(report.Malformed, report.Warnings) {
		require.Zero(t, report.Count(func(m judge.Message) bool { return m.Frame == f.Frame && sent(m) }), f.Text)
	}
	scapy.say("dissect", files[0])
	require.Equal(t, fmt.Sprint("dissected ", report.Count(sent)), scapy.until("dissected"))
	_, differs, _ := scapy.take("differs")
	require.False(t, differs, "scapy builds other bytes of what it dissected")
	scapy.stop()
}

// Our client takes an offer and events that scapy makes, with all that a stranger may
// put beside them.
func TestForgedToClient(t *testing.T) {
	s := forge(t, matrix.Serve)
	ours := s.startOurs()
	scapy := s.startTheirs()
	scapy.say("sd", "offer, unknown entry and options")
	ours.until("up")
	subscribed := strings.Fields(scapy.until("got sd 6 1 5 "))
	scapy.say("client", subscribed[len(subscribed)-1])
	scapy.say("sd", "ack")
	deadline := time.Now().Add(patience)
	for arrived := false; !arrived; {
		require.True(t, time.Now().Before(deadline), "no event")
		scapy.say("data", "two events, unaligned")
		_, arrived = ours.await("event 8001 - "+hex.EncodeToString([]byte("four")), 100*time.Millisecond)
	}
	ours.until("event 8001 - " + hex.EncodeToString([]byte("123")))
	scapy.say("data", "event of nobody")
	for _, name := range []string{"junk behind", "length 0", "cut header", "unknown type", "empty datagram"} {
		scapy.say("data", name)
	}
	ours.drop("event")
	scapy.say("data", "two events, unaligned")
	ours.until("event 8001 - " + hex.EncodeToString([]byte("four")))
	scapy.stop()
	ours.stop()
	require.NotZero(t, counts(t, ours).Bad)
}
