package tp_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/tp"
)

var (
	now  = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	path = tp.Path{From: netip.MustParseAddrPort("10.0.0.1:30509"), To: netip.MustParseAddrPort("10.0.0.2:40000")}
)

// small makes short test messages: segments of 16 bytes, whatever fits.
const small = 16

// segment returns segment i of a message of n small segments.
func segment(session uint16, n, i int) someip.Message {
	return piece(session, fill(session, n*small), i*small, small, i < n-1)
}

// fill is the payload of the message of a session.
func fill(session uint16, n int) []byte {
	b := pattern(n)
	for i := range b {
		b[i] ^= byte(session)
	}
	return b
}

func piece(session uint16, payload []byte, at, n int, more bool) someip.Message {
	m := event(session, append(tp.Header{Offset: uint32(at), More: more}.Append(nil), payload[at:at+n]...))
	m.Type |= someip.FlagTP
	return m
}

// bench drives a Reassembler.
type bench struct {
	*tp.Reassembler
	t   *testing.T
	now time.Time
}

func newBench(t *testing.T, c tp.Config) *bench {
	t.Helper()
	return &bench{tp.NewReassembler(c), t, now}
}

// take wants a segment to be taken and the message not to be whole yet.
func (b *bench) take(segments ...someip.Message) {
	b.t.Helper()
	for _, m := range segments {
		whole, err := b.Receive(b.now, path, m)
		require.NoError(b.t, err)
		require.Nil(b.t, whole)
	}
}

// whole wants a segment to complete the message of n small segments.
func (b *bench) whole(m someip.Message, n int) {
	b.t.Helper()
	whole, err := b.Receive(b.now, path, m)
	require.NoError(b.t, err)
	require.Equal(b.t, event(m.Session, fill(m.Session, n*small)).Append(nil), whole)
}

func (b *bench) drop(m someip.Message, reason tp.Reason) {
	b.t.Helper()
	whole, err := b.Receive(b.now, path, m)
	require.Nil(b.t, whole)
	var discard *tp.DiscardError
	require.ErrorAs(b.t, err, &discard)
	require.Equal(b.t, reason, discard.Reason, "%v", discard)
}

// cancelled wants so many messages to have been cancelled for a reason, and
// nothing to have been lost count of.
func (b *bench) cancelled(reason tp.Reason, n uint64) {
	b.t.Helper()
	s := b.Stats()
	require.Equal(b.t, n, s.Cancelled[reason], "%v: %+v", reason, s)
	balanced(b.t, s)
}

func balanced(tb testing.TB, s tp.Stats) {
	tb.Helper()
	over := s.Completed
	for _, n := range s.Cancelled {
		over += n
	}
	if s.Started != over+uint64(s.Open) {
		tb.Fatalf("%d messages started: %+v", s.Started, s)
	}
	if s.Open == 0 && s.Bytes != 0 {
		tb.Fatalf("%d bytes held for nothing", s.Bytes)
	}
}

// Case 28: one lost segment costs one message and never mixes two.
func TestCase28LostSegment(t *testing.T) {
	for _, tc := range []struct {
		name     string
		sessions [4]uint16
		cancel   tp.Reason
	}{
		{"sessions", [4]uint16{1, 2, 3, 4}, tp.Superseded},
		{"equal sessions", [4]uint16{7, 7, 7, 7}, tp.Restarted},
		{"no session", [4]uint16{}, tp.Gap},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, tp.Config{})
			const n = 6
			for message, session := range tc.sessions {
				for i := range n {
					switch m := segment(session, n, i); {
					case message == 0 && i == 1: // lost
					case message == 0 && i == n-1 && tc.cancel == tp.Gap:
						b.drop(m, tp.Gap)
					case message > 0 && i == n-1:
						b.whole(m, n)
					default:
						b.take(m)
					}
				}
			}
			b.cancelled(tc.cancel, 1)
			require.EqualValues(t, 3, b.Stats().Completed)
		})
	}
}

// Case 28: without another message the time ends it.
func TestCase28Timeout(t *testing.T) {
	var told []tp.Cancelled
	b := newBench(t, tp.Config{Timeout: time.Second, OnCancel: func(c tp.Cancelled) { told = append(told, c) }})
	_, ok := b.Next()
	require.False(t, ok)
	b.take(segment(1, 4, 0))
	b.now = b.now.Add(900 * time.Millisecond)
	b.take(segment(1, 4, 2)) // renews
	b.drop(segment(1, 4, 2), tp.Duplicate)
	next, ok := b.Next()
	require.True(t, ok)
	require.Equal(t, b.now.Add(time.Second), next)
	require.Zero(t, b.Tick(next.Add(-1)))
	require.Equal(t, 1, b.Tick(next))
	b.cancelled(tp.TimedOut, 1)
	require.Len(t, told, 1)
	h := event(1, nil).Header
	h.Length = told[0].Header.Length
	require.Equal(t, tp.Cancelled{Path: path, Header: h, Received: 2 * small, Reason: tp.TimedOut}, told[0])
	b.now = next
	b.drop(segment(1, 4, 3), tp.Stray)
	require.Zero(t, b.Stats().Open)
}

// Case 32, TP-5: parallel messages that differ in one thing only do not mix.
func TestCase32ParallelMessages(t *testing.T) {
	b := newBench(t, tp.Config{})
	other := netip.MustParseAddrPort("10.0.0.3:30509")
	type variant struct {
		path tp.Path
		mod  func(*someip.Header)
	}
	none := func(*someip.Header) {}
	variants := []variant{
		{path, none},
		{tp.Path{From: other, To: path.To}, none},
		{tp.Path{From: netip.AddrPortFrom(path.From.Addr(), 1), To: path.To}, none},
		{tp.Path{From: path.From, To: other}, none},
		{path, func(h *someip.Header) { h.Service++ }},
		{path, func(h *someip.Header) { h.Method++ }},
		{path, func(h *someip.Header) { h.Client++ }},
		{path, func(h *someip.Header) { h.InterfaceVersion++ }},
		{path, func(h *someip.Header) { h.Type = someip.Request | someip.FlagTP }},
	}
	for i := range 3 {
		for v, variant := range variants {
			m := segment(1, 3, i)
			variant.mod(&m.Header)
			m.Payload[tp.HeaderSize] = byte(v)
			whole, err := b.Receive(b.now, variant.path, m)
			require.NoError(t, err)
			if i < 2 {
				require.Nil(t, whole)
				continue
			}
			want := event(1, fill(1, 3*small))
			variant.mod(&want.Header)
			want.Type = want.Type.Base()
			for j := range 3 {
				want.Payload[j*small] = byte(v)
			}
			require.Equal(t, want.Append(nil), whole)
		}
	}
	balanced(t, b.Stats())
}

// TP-7: every order of four segments, the first one last included.
func TestEveryOrder(t *testing.T) {
	var permute func(order []int, rest []int)
	session := uint16(0)
	b := newBench(t, tp.Config{})
	permute = func(order, rest []int) {
		if len(rest) > 0 {
			for i := range rest {
				next := append([]int{}, rest[:i]...)
				permute(append(order, rest[i]), append(next, rest[i+1:]...))
			}
			return
		}
		session++
		for _, i := range order[:3] {
			b.take(segment(session, 4, i))
		}
		b.whole(segment(session, 4, order[3]), 4)
	}
	permute(nil, []int{0, 1, 2, 3})
	require.EqualValues(t, 24, b.Stats().Completed)
}

// TP-7: descending order of many segments is an option.
func TestDescending(t *testing.T) {
	const n = 1000
	b := newBench(t, tp.Config{Reorder: tp.AnyOrder})
	for i := n - 1; i > 0; i-- {
		b.take(segment(1, n, i))
	}
	b.whole(segment(1, n, 0), n)

	b = newBench(t, tp.Config{Reorder: 4})
	for i := n - 1; i >= n-4; i-- {
		b.take(segment(1, n, i))
	}
	b.drop(segment(1, n, n-5), tp.Gap)
	b.cancelled(tp.Gap, 1)
	b.drop(segment(1, n, n-6), tp.Stray)
	b.take(segment(1, n, 0)) // a beginning begins
}

// TP-7: what comes twice counts once; partial overlaps keep the first bytes.
func TestDuplicates(t *testing.T) {
	b := newBench(t, tp.Config{})
	b.take(segment(1, 4, 0), segment(1, 4, 1))
	b.drop(segment(1, 4, 1), tp.Duplicate)
	b.take(segment(1, 4, 3))
	b.drop(segment(1, 4, 3), tp.Duplicate)
	b.whole(segment(1, 4, 2), 4)
	b.drop(segment(1, 4, 3), tp.Stray)
	b.drop(segment(1, 4, 1), tp.Stray)
	require.EqualValues(t, 1, b.Stats().Completed)
	balanced(t, b.Stats())

	good, bad := fill(2, 10*small), make([]byte, 10*small)
	b.take(piece(2, good, 0, 2*small, true), piece(2, good, 4*small, small, true), piece(2, good, 6*small, small, true))
	whole, err := b.Receive(b.now, path, piece(2, overwrite(good, bad, 2, 3, 5, 7, 8, 9), small, 9*small, false))
	require.NoError(t, err)
	require.Equal(t, event(2, overwrite(good, bad, 2, 3, 5, 7, 8, 9)).Append(nil), whole)
}

// overwrite returns dst with the given small segments of src.
func overwrite(dst, src []byte, segments ...int) []byte {
	b := append([]byte{}, dst...)
	for _, i := range segments {
		copy(b[i*small:(i+1)*small], src[i*small:])
	}
	return b
}

func TestCancelOverlap(t *testing.T) {
	b := newBench(t, tp.Config{CancelOverlap: true})
	b.take(segment(1, 4, 0), segment(1, 4, 1))
	b.drop(segment(1, 4, 1), tp.Overlap)
	b.cancelled(tp.Overlap, 1)
	b.drop(segment(1, 4, 2), tp.Stray)

	// Without session a repetition may be the next message.
	b = newBench(t, tp.Config{})
	b.take(segment(0, 4, 0), segment(0, 4, 1))
	b.drop(segment(0, 4, 1), tp.Overlap)
	b.drop(segment(0, 4, 2), tp.Stray)
	b.take(segment(0, 4, 0), segment(0, 4, 2), segment(0, 4, 1))
	b.whole(segment(0, 4, 3), 4)
	b.take(segment(0, 4, 0))
	b.take(segment(0, 4, 0))
	b.cancelled(tp.Restarted, 1)
}

// TP-6: the return code is that of the last segment, wherever it comes.
func TestReturnCode(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		r := tp.NewReassembler(tp.Config{})
		for at, i := range order {
			m := segment(1, 3, i)
			m.Type, m.Code = someip.Error|someip.FlagTP, someip.ReturnCode(0x20+i)
			whole, err := r.Receive(now, path, m)
			require.NoError(t, err)
			if at == 2 {
				got := parse(t, whole)
				require.Equal(t, someip.Error, got.Type)
				require.EqualValues(t, 0x22, got.Code)
			}
		}
	}
}

// TP-8, TP-10: what cancels a message.
func TestCancel(t *testing.T) {
	long := fill(1, 100*small)
	for name, tc := range map[string]struct {
		bad    someip.Message
		reason tp.Reason
	}{
		"length no multiple of 16": {piece(1, long, 48, 15, true), tp.Malformed},
		"empty":                    {piece(1, long, 48, 0, false), tp.Malformed},
		"no TP header":             {someip.Message{Header: segment(1, 4, 1).Header, Payload: []byte{0, 0, 0}}, tp.Malformed},
		"beyond the maximum":       {piece(1, long, 63*small, 2*small, true), tp.TooLong},
		"other end":                {piece(1, long, 4*small, small, false), tp.EndMismatch},
		"earlier end":              {piece(1, long, 2*small, small, false), tp.EndMismatch},
		"more behind the end":      {piece(1, long, 4*small, small, true), tp.EndMismatch},
		"more at the end":          {piece(1, long, 3*small, small, true), tp.EndMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tp.Config{MaxMessage: 64 * small})
			b.take(segment(1, 4, 0), segment(1, 4, 3))
			b.drop(tc.bad, tc.reason)
			b.cancelled(tc.reason, 1)
			b.drop(segment(1, 4, 1), tp.Stray)
			b.take(segment(2, 4, 0))
			b.drop(tc.bad, map[bool]tp.Reason{true: tp.Stray, false: tc.reason}[tc.reason == tp.EndMismatch])
			b.take(segment(2, 4, 1), segment(2, 4, 2)) // another session is not concerned
			b.whole(segment(2, 4, 3), 4)
			balanced(t, b.Stats())
		})
	}
	// The end ahead of what came, and the same range with and without an end.
	b := newBench(t, tp.Config{})
	b.take(segment(1, 9, 5))
	b.drop(segment(1, 4, 3), tp.EndMismatch)
	b.take(segment(2, 9, 3))
	b.drop(segment(2, 4, 3), tp.EndMismatch)
	b.cancelled(tp.EndMismatch, 2)
}

// TP-10.
func TestNotAllowed(t *testing.T) {
	b := newBench(t, tp.Config{Limit: func(h someip.Header) int {
		if h.Method == 0x8777 {
			return 3 * small
		}
		return 0
	}})
	m := segment(1, 3, 0)
	m.Method = 1
	b.drop(m, tp.NotAllowed)
	b.take(segment(1, 3, 0), segment(1, 3, 1))
	b.whole(segment(1, 3, 2), 3)
	b.take(segment(2, 4, 0))
	b.drop(segment(2, 4, 3), tp.TooLong)
	whole := event(1, nil) // not a segment
	b.drop(whole, tp.NotAllowed)

	b = newBench(t, tp.Config{})
	m = segment(1, 3, 0)
	m.Service, m.Method = someip.ServiceSD, someip.MethodSD
	b.drop(m, tp.NotAllowed)
	require.Zero(t, b.Stats().Started)
	require.EqualValues(t, 1, b.Stats().Dropped[tp.NotAllowed])
}

// What comes late from the message before does not end the one under way.
func TestLateSegment(t *testing.T) {
	b := newBench(t, tp.Config{})
	b.take(segment(1, 3, 0), segment(1, 3, 1))
	b.whole(segment(1, 3, 2), 3)
	b.take(segment(2, 3, 1))
	b.drop(segment(1, 3, 1), tp.Stray)
	b.take(segment(2, 3, 0))
	b.whole(segment(2, 3, 2), 3)
}

// A restarted peer begins its sessions again, and in any order.
func TestForget(t *testing.T) {
	b := newBench(t, tp.Config{})
	b.take(segment(1, 3, 0), segment(1, 3, 1))
	b.whole(segment(1, 3, 2), 3)
	b.take(segment(2, 3, 0))
	b.Forget(b.now, netip.MustParseAddr("10.9.9.9"))
	require.Equal(t, 1, b.Stats().Open)
	b.Forget(b.now, path.From.Addr())
	b.cancelled(tp.Forgotten, 1)
	b.take(segment(1, 3, 1), segment(1, 3, 0))
	b.whole(segment(1, 3, 2), 3)
}

func TestReasons(t *testing.T) {
	require.Equal(t, "forgotten", tp.Forgotten.String())
	require.Equal(t, "Reason(99)", tp.Reason(99).String())
	require.EqualError(t, &tp.DiscardError{Reason: tp.TooLong, Offset: 32}, "tp: segment at byte 32: too long")
}
