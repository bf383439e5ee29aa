package corpus

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"carisma.dev/gateway/someip"
)

// Messages returns the messages in the captures, frames and vectors that choose wants (nil:
// all): one of each message id, type, return code and size, and at most limit. They are
// found by their header, as the payload of a frame is contiguous in a capture; what is
// taken for a message and is none does no harm as a seed.
func Messages(tb testing.TB, limit int, choose func(someip.Message) bool) (messages [][]byte) {
	tb.Helper()
	type kind struct {
		service, method uint16
		mt              someip.MessageType
		code            someip.ReturnCode
		size            int
	}
	seen := map[kind]bool{}
	look := func(b []byte) {
		for len(b) >= someip.HeaderSize && len(messages) < limit {
			m, rest, ok := message(b)
			k := kind{m.Service, m.Method, m.Type, m.Code, len(m.Payload)}
			if !ok {
				b = b[1:]
				continue
			}
			if !seen[k] && (choose == nil || choose(m)) {
				seen[k] = true
				messages = append(messages, bytes.Clone(b[:len(b)-len(rest)]))
			}
			b = rest
		}
	}
	for _, b := range Files(tb, "frames", 1<<20, ".dat") {
		if raw, err := hex.DecodeString(string(bytes.TrimSpace(b))); err == nil {
			look(raw)
		}
	}
	for _, b := range Texts(tb, "vectors/pysomeip") {
		look(b)
	}
	for _, b := range Files(tb, "pcap", 1<<20, ".pcap", ".pcapng") {
		look(b)
	}
	return messages
}

// message takes one that begins with b, if it looks like one: more than a header by itself.
func message(b []byte) (m someip.Message, rest []byte, ok bool) {
	const longest = 1500
	if b[12] != someip.ProtocolVersion || binary.BigEndian.Uint32(b[4:]) > longest {
		return m, nil, false
	}
	m, rest, err := someip.ParseMessage(b)
	return m, rest, err == nil && m.Service != 0 && m.Validate() == nil
}
