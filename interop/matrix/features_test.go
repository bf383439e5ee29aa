package matrix_test

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/matrix"
)

// id is a number as the lines of the programs have it.
func id(n uint16) string { return fmt.Sprintf("%x", n) }

// call has the client call a method and returns code and payload of the answer.
func call(client *program, transport string, method uint16, payload string) string {
	client.t.Helper()
	client.say("call", transport, id(method), payload)
	return strings.TrimPrefix(client.until("answer "), "answer ")
}

// methods calls whatever the two sides have for it.
func (s *session) methods(server, client *program) {
	s.Helper()
	largest := cmp.Or(s.peer.ability(s.role).largest, 1400)
	for _, transport := range s.peer.transports(s.role) {
		way := strings.ToUpper(transport)
		for _, payload := range []string{"-", s.payload(4), s.payload(8), s.payload(largest)} {
			require.Equal(s, "0 "+payload, call(client, transport, matrix.Echo, payload))
		}
		s.worked(matrix.Methods, way)
		if code := s.peer.refuses(s.role); code != "" {
			require.Equal(s, code+" -", call(client, transport, matrix.Refuse, "-"))
			s.worked(matrix.Errors, way)
		}
		if s.peer.answersUnknown(s.role) {
			require.Equal(s, "3 -", call(client, transport, matrix.Unknown, "-"))
			s.worked(matrix.Errors, way)
		}
		if s.peer.can(s.role, matrix.FireAndForget) {
			payload := s.payload(8)
			client.say("send", transport, id(matrix.Tell), payload)
			server.until("told " + payload)
			s.worked(matrix.FireAndForget, way)
		}
	}
	if s.peer.can(s.role, matrix.SegmentedCall) {
		for _, size := range []int{1401, 5000} {
			payload := s.payload(size)
			require.Equal(s, "0 "+payload, call(client, "udp", matrix.EchoLarge, payload))
		}
		s.worked(matrix.SegmentedCall, "UDP")
	}
}

// deliver waits until an event comes through, then wants each one, once.
func (s *session) deliver(server, client *program, e matrix.Event) {
	s.Helper()
	size, protected := 8, "-"
	if e.TP {
		size = 5000
	}
	if e.E2E != nil {
		protected = "ok"
	}
	line := func(payload string) string {
		return strings.Join([]string{"event", id(e.ID), protected, payload}, " ")
	}
	if e.Field {
		client.until(line(s.value(e)))
	}
	deadline := time.Now().Add(patience)
	for arrived := false; !arrived; {
		require.True(s, time.Now().Before(deadline), "event %s does not arrive", id(e.ID))
		payload := s.payload(size)
		server.say("notify", id(e.ID), payload)
		_, arrived = client.await(line(payload), 100*time.Millisecond)
	}
	var last string
	for range 3 {
		last = s.payload(size)
		server.say("notify", id(e.ID), last)
		client.until(line(last))
	}
	_, twice, _ := client.take(line(last))
	require.False(s, twice, "an event came twice")
	if e.Field {
		s.values[e.ID] = last
	}
	way := "UDP"
	if e.TCP {
		way = "TCP"
	}
	s.worked(e.What(), way)
}

// value is that of a field.
func (s *session) value(e matrix.Event) string {
	if v := s.values[e.ID]; v != "" {
		return v
	}
	return hex.EncodeToString([]byte(matrix.FieldValue))
}

// reach waits until calls work, however often they fail before: a server may offer
// one transport ahead of the other, or have been killed.
func (s *session) reach(client *program, transports []string) {
	s.Helper()
	for _, transport := range transports {
		deadline := time.Now().Add(patience)
		for ok := false; !ok; {
			require.True(s, time.Now().Before(deadline), "calls over %s do not work", transport)
			payload := s.payload(8)
			client.say("call", transport, id(matrix.Echo), payload)
			_, ok = client.await("answer 0 "+payload, 300*time.Millisecond)
		}
	}
	client.drop("answer")
	client.drop("failed")
}

// all does what the two sides can do.
func (s *session) all(server, client *program) {
	s.Helper()
	client.until("up")
	s.reach(client, s.peer.transports(s.role))
	s.methods(server, client)
	for _, e := range s.events {
		s.deliver(server, client, e)
	}
}

// again does some of it after a restart.
func (s *session) again(server, client *program) {
	s.Helper()
	transports := slices.DeleteFunc(slices.Clone(s.peer.transports(s.role)), func(transport string) bool {
		return transport == "tcp" && s.peer.ability(s.role).stuck
	})
	s.reach(client, transports)
	for _, e := range s.events {
		if e.TCP && s.peer.ability(s.role).stuck {
			continue
		}
		if slices.Contains([]uint16{matrix.EventUDP.ID, matrix.FieldUDP.ID, matrix.EventTCP.ID}, e.ID) {
			s.deliver(server, client, e)
		}
	}
}
