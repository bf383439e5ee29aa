package tp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/tp"
)

// Neither side allocates once it has seen messages of a size, in whatever order
// the segments come.
func TestNoAllocations(t *testing.T) {
	m := event(1, pattern(20000))
	b := make([]byte, 0, 1500)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s, err := tp.Rule{}.Segment(m)
		if err != nil {
			t.Fatal(err)
		}
		for more := true; more; {
			b, more = s.Append(b[:0])
		}
	}))

	segments := parsed(t, m)
	segments[2], segments[4] = segments[4], segments[2]
	r := tp.NewReassembler(tp.Config{})
	receive := func() {
		for i := range segments {
			segments[i].Session++
			whole, err := r.Receive(now, path, segments[i])
			if err != nil || (whole != nil) != (i == len(segments)-1) {
				t.Fatal(i, err)
			}
		}
	}
	receive()
	require.Zero(t, testing.AllocsPerRun(100, receive))
}

func parsed(tb testing.TB, m someip.Message) []someip.Message {
	tb.Helper()
	var all []someip.Message
	for _, b := range split(tb, tp.Rule{}, m) {
		all = append(all, parse(tb, b))
	}
	return all
}

// The sizes are those of the payload of a whole message.
var sizes = []int{3000, 64 << 10, 1 << 20}

func BenchmarkSegment(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			m := event(1, pattern(size))
			datagram := make([]byte, 0, 1500)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				s, err := tp.Rule{}.Segment(m)
				if err != nil {
					b.Fatal(err)
				}
				for more := true; more; {
					datagram, more = s.Append(datagram[:0])
				}
			}
		})
	}
}

func BenchmarkReceive(b *testing.B) {
	for _, order := range []string{"ascending", "swapped", "descending"} {
		for _, size := range sizes {
			b.Run(fmt.Sprintf("%s/%d", order, size), func(b *testing.B) {
				segments := parsed(b, event(1, pattern(size)))
				last := len(segments) - 1
				for i := range segments {
					switch j := last - i; {
					case order == "swapped" && i%2 == 1, order == "descending" && i < j:
						if order == "swapped" {
							j = i - 1
						}
						segments[i], segments[j] = segments[j], segments[i]
					}
				}
				r := tp.NewReassembler(tp.Config{Reorder: tp.AnyOrder})
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					for i := range segments {
						segments[i].Session = someip.NextSession(segments[i].Session)
						whole, err := r.Receive(now, path, segments[i])
						if err != nil || (whole != nil) != (i == last) {
							b.Fatal(i, err)
						}
					}
				}
			})
		}
	}
}
