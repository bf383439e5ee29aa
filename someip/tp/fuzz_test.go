package tp_test

import (
	"bytes"
	"testing"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/internal/corpus"
	"carisma.dev/gateway/someip/tp"
)

// FuzzReceive gives a Reassembler any messages, one behind the other.
func FuzzReceive(f *testing.F) {
	// Short segments: the fuzzer spends its time on making long inputs shorter.
	for session := range uint16(2) {
		for i, order := range [][]int{{0}, {2}, {0, 1, 2}, {2, 1, 0}, {0, 1, 2, 0, 1, 2}, {0, 2, 1, 1}, {0, 2, 0, 1, 2}} {
			var once, parallel []byte
			for _, number := range order {
				m := segment(session, 3, number)
				once = m.Append(once)
				parallel = m.Append(parallel)
				m.Session++
				parallel = m.Append(parallel)
			}
			f.Add(uint8(i), once)
			f.Add(uint8(i), parallel)
		}
	}
	var segments []byte
	for i, b := range corpus.Messages(f, 32, func(m someip.Message) bool { return m.Type.TP() }) {
		segments = append(segments, b...)
		f.Add(uint8(i), b)
	}
	f.Add(uint8(0), segments)
	f.Fuzz(func(t *testing.T, options uint8, b []byte) {
		const limit = 4096
		r := tp.NewReassembler(tp.Config{
			MaxMessage: 64 << 10, MaxPeerMessages: 3, MaxMessages: 4, MaxPeerBytes: limit, MaxBytes: 2 * limit,
			Reorder: 3, CancelOverlap: options&1 != 0, Timeout: 10 * time.Nanosecond,
		})
		var payload int // bytes of it that came
		at := now
		for len(b) > 0 {
			m, rest, err := someip.ParseMessage(b)
			if err != nil {
				return
			}
			b, payload = rest, payload+len(m.Payload)
			at = at.Add(1)
			whole, err := r.Receive(at, path, m)
			if err != nil && whole != nil {
				t.Fatal("a message and an error")
			}
			if whole != nil {
				got, rest, err := someip.ParseMessage(whole)
				if err != nil || len(rest) != 0 || got.Type.TP() || len(got.Payload) > payload {
					t.Fatalf("%v: %x", err, whole)
				}
			}
			if options&2 != 0 {
				r.Tick(at)
			}
			s := r.Stats()
			balanced(t, s)
			if s.Bytes > 2*limit || s.Open > 3 {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// FuzzSegment sends any message through both sides.
func FuzzSegment(f *testing.F) {
	f.Add(uint16(1), uint16(87), uint8(0x80), []byte("payload"), uint16(3000))
	f.Add(uint16(9), uint16(1), uint8(0x02), []byte{1, 2, 3}, uint16(1401))
	f.Add(uint16(0), uint16(0), uint8(0x00), []byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, session, units uint16, typ uint8, b []byte, size uint16) {
		payload := bytes.Repeat(append(b, 1), int(size)/(len(b)+1)+1)[:size]
		m := event(session, payload)
		m.Type = someip.MessageType(typ)
		s, err := tp.Rule{SegmentLength: int(units) * 16}.Segment(m)
		if err != nil {
			return
		}
		r := tp.NewReassembler(tp.Config{})
		for more := true; more; {
			var b []byte
			b, more = s.Append(nil)
			segment, rest, err := someip.ParseMessage(b)
			if err != nil || len(rest) != 0 {
				t.Fatalf("%v: %x", err, b)
			}
			if !segment.Type.TP() {
				if more || !bytes.Equal(b, m.Append(nil)) {
					t.Fatalf("%x is no message", b)
				}
				return
			}
			whole, err := r.Receive(now, path, segment)
			if err != nil {
				t.Fatal(err)
			}
			if !more && !bytes.Equal(whole, m.Append(nil)) {
				t.Fatalf("%x became %x", m.Append(nil), whole)
			}
		}
	})
}
