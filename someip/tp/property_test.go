package tp_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/tp"
)

// arrival is a segment on its way.
type arrival struct {
	message int
	segment []byte
}

// shuffle moves segments so that none is overtaken by one that was sent more than
// distance later.
func shuffle(random *rand.Rand, all []arrival, distance int) {
	at := make(map[*byte]float64, len(all))
	for i := range all {
		at[&all[i].segment[0]] = float64(i) + random.Float64()*(float64(distance)+0.5)
	}
	slices.SortStableFunc(all, func(a, b arrival) int {
		if at[&a.segment[0]] < at[&b.segment[0]] {
			return -1
		}
		return 1
	})
}

// Segments reordered within distance 3, lost and doubled: what comes out is a
// message that was sent, and memory stays bounded. Without loss and doubles every
// message comes out.
func TestReorderLossDuplication(t *testing.T) {
	for seed := range uint64(180) {
		random := rand.New(rand.NewPCG(seed, 1))
		loss, double := float64(seed%3)*0.1, float64(seed/3%3)*0.1
		cfg := tp.Config{Reorder: 3, MaxPeerMessages: 4, MaxPeerBytes: 128 << 10, CancelOverlap: seed%2 == 0}
		r := tp.NewReassembler(cfg)

		const messages = 20
		sent := make([]someip.Message, messages)
		var arrivals []arrival
		for i := range sent {
			sent[i] = event(uint16(i+1), fill(uint16(i+1), 1401+random.IntN(10000)))
			sent[i].Method += uint16(i % 3)
			var own []arrival
			for _, b := range split(t, tp.Rule{SegmentLength: 16 * (30 + random.IntN(57))}, sent[i]) {
				if random.Float64() >= loss {
					own = append(own, arrival{i, b})
				}
				for random.Float64() < double {
					own = append(own, arrival{i, bytes.Clone(b)})
				}
			}
			shuffle(random, own, 3)
			arrivals = append(arrivals, own...)
		}
		if loss > 0 || double > 0 { // neighbours overtake each other too
			shuffle(random, arrivals, 3)
		}

		delivered := map[int]int{}
		at := now
		for _, a := range arrivals {
			at = at.Add(time.Millisecond)
			whole, _ := r.Receive(at, path, parse(t, a.segment))
			if whole != nil {
				if !bytes.Equal(sent[a.message].Append(nil), whole) {
					t.Fatalf("seed %d: message %d is mixed", seed, a.message)
				}
				delivered[a.message]++
			}
			s := r.Stats()
			balanced(t, s)
			if s.Bytes > cfg.MaxPeerBytes {
				t.Fatalf("seed %d: %d bytes", seed, s.Bytes)
			}
		}
		if loss == 0 && double == 0 {
			require.Len(t, delivered, messages, "seed %d: %+v", seed, r.Stats())
		}
		r.Tick(at.Add(time.Minute))
		require.Zero(t, r.Stats().Open)
		balanced(t, r.Stats())
	}
}
