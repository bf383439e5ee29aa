package tp_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/tp"
)

// pattern is a payload of which every stretch is different.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*31 ^ byte(i>>16)*17
	}
	return b
}

func event(session uint16, payload []byte) someip.Message {
	return someip.NewNotification(0x1234, 0x8777, 1, session, payload)
}

// split returns the datagrams of a message.
func split(tb testing.TB, rule tp.Rule, m someip.Message) [][]byte {
	tb.Helper()
	s, err := rule.Segment(m)
	require.NoError(tb, err)
	var all [][]byte
	for more := true; more; {
		left := s.Segments()
		var b []byte
		b, more = s.Append(nil)
		require.Equal(tb, more, left > 1)
		all = append(all, b)
	}
	return all
}

func parse(tb testing.TB, b []byte) someip.Message {
	tb.Helper()
	m, rest, err := someip.ParseMessage(b)
	require.NoError(tb, err)
	require.Empty(tb, rest)
	return m
}

// The example of section 4: 3000 bytes in segments of 1392.
// TP-0.
func TestGolden(t *testing.T) {
	m := event(1, pattern(3000))
	segments := split(t, tp.Rule{}, m)
	require.Len(t, segments, 3)
	for i, want := range []string{
		"12348777 0000057c 00000001 01012200 00000001",
		"12348777 0000057c 00000001 01012200 00000571",
		"12348777 000000e4 00000001 01012200 00000ae0",
	} {
		head, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(want), []byte(" "), nil)))
		require.NoError(t, err)
		require.Equal(t, append(head, m.Payload[i*1392:min((i+1)*1392, 3000)]...), segments[i])
	}

	r := tp.NewReassembler(tp.Config{})
	for i, b := range segments {
		whole, err := r.Receive(now, path, parse(t, b))
		require.NoError(t, err)
		if i < 2 {
			require.Nil(t, whole)
		} else {
			require.Equal(t, m.Append(nil), whole)
		}
	}
}

// TP-0.
func TestHeader(t *testing.T) {
	for _, h := range []tp.Header{{}, {More: true}, {Offset: 1392, More: true}, {Offset: 0xFFFFFFF0}} {
		got, err := tp.ParseHeader(h.Append(nil))
		require.NoError(t, err)
		require.Equal(t, h, got)
	}
	got, err := tp.ParseHeader([]byte{0, 0, 0, 0x1F}) // the reserved bits are ignored
	require.NoError(t, err)
	require.Equal(t, tp.Header{Offset: 16, More: true}, got)
	require.Equal(t, []byte{0, 0, 0, 0x11}, tp.Header{Offset: 31, More: true}.Append(nil))
	for n := range tp.HeaderSize {
		_, err := tp.ParseHeader(make([]byte, n))
		require.ErrorIs(t, err, someip.ErrShort)
	}
}

// Case 31, TP-1: every segment of every type has the flag and the header.
func TestCase31AllTypes(t *testing.T) {
	for _, typ := range []someip.MessageType{
		someip.Request, someip.RequestNoReturn, someip.Notification, someip.Response, someip.Error,
	} {
		m := someip.NewRequest(0x1234, 0x0421, 3, 0x1343, 9, pattern(3000))
		m.Type = typ
		if typ == someip.Error {
			m.Code = 0x21
		}
		r := tp.NewReassembler(tp.Config{})
		for i, b := range split(t, tp.Rule{}, m) {
			segment := parse(t, b)
			require.Equal(t, typ|0x20, segment.Type)
			h := segment.Header
			h.Type, h.Length = typ, m.Length
			require.Equal(t, m.Header, h)
			head, err := tp.ParseHeader(segment.Payload)
			require.NoError(t, err)
			require.Equal(t, tp.Header{Offset: uint32(i * 1392), More: i < 2}, head)
			whole, err := r.Receive(now, path, segment)
			require.NoError(t, err)
			if i == 2 {
				require.Equal(t, m.Append(nil), whole)
			}
		}
	}
}

// TP-2, TP-3: the sizes of segments; a message that fits goes whole.
// TP-11.
func TestSegmentLengths(t *testing.T) {
	for _, tc := range []struct {
		length, payload int
		want            []int // bytes of payload in each datagram
	}{
		{0, 0, []int{0}},
		{0, 1400, []int{1400}},
		{0, 1401, []int{1392, 9}},
		{0, 2784, []int{1392, 1392}},
		{0, 2785, []int{1392, 1392, 1}},
		{512, 1400, []int{1400}},
		{512, 1500, []int{512, 512, 476}},
		{8000, 9000, []int{8000, 1000}},
		{8000, 7000, []int{7000}},
	} {
		segments := split(t, tp.Rule{SegmentLength: tc.length}, event(1, pattern(tc.payload)))
		require.Len(t, segments, len(tc.want))
		for i, b := range segments {
			m := parse(t, b)
			if tc.payload > 1400 {
				require.True(t, m.Type.TP())
				require.Len(t, m.Payload, tp.HeaderSize+tc.want[i])
			} else {
				require.False(t, m.Type.TP())
				require.Len(t, m.Payload, tc.want[i])
			}
		}
	}
	for _, length := range []int{-16, 1, 8, 1391, 1400, 65488} {
		_, err := tp.Rule{SegmentLength: length}.Segment(event(1, nil))
		require.ErrorIs(t, err, tp.ErrSegmentLength)
	}
}

func TestSegmentRefuses(t *testing.T) {
	_, err := tp.Rule{}.Segment(event(0, pattern(2000)))
	require.ErrorIs(t, err, tp.ErrSession) // TP-4
	_, err = tp.Rule{}.Segment(event(0, pattern(20)))
	require.NoError(t, err)
	m := event(1, pattern(2000))
	m.Type |= someip.FlagTP
	_, err = tp.Rule{}.Segment(m)
	require.ErrorIs(t, err, someip.ErrMessageType)
}
