package lossy

import (
	"math/rand/v2"
	"time"
)

// Rates say how often something happens to a datagram, from 0 (never) to 1.
type Rates struct {
	Drop      float64
	Duplicate float64
	Reorder   float64 // held back for [HoldBack], so that later ones overtake it
	Corrupt   float64 // one bit is another
	// Delay and Jitter delay every datagram: by Delay and up to Jitter more.
	Delay, Jitter time.Duration
}

// Faults are what a relay does to service discovery and to everything else.
type Faults struct{ SD, Data Rates }

// HoldBack is how long a datagram waits that others are to overtake.
const HoldBack = 5 * time.Millisecond

// fate is what happens to one datagram.
type fate struct {
	drop    bool
	corrupt bool
	bit     uint64          // which one is changed, modulo the size
	delays  []time.Duration // one for each copy
	held    int             // copies that are held back
}

// fates draws the fates of a flow: the n-th datagram has the same one in every
// run with the same seed and rates, whatever other flows do.
type fates struct{ random *rand.Rand }

func newFates(seed, flow uint64) fates { return fates{rand.New(rand.NewPCG(seed, flow))} }

// next always draws as many numbers, so that one rate does not change what
// another decides.
func (f fates) next(r Rates) fate {
	var draw [8]float64
	for i := range draw {
		draw[i] = f.random.Float64()
	}
	result := fate{drop: draw[0] < r.Drop, corrupt: draw[1] < r.Corrupt, bit: f.random.Uint64()}
	copies := 1
	if draw[2] < r.Duplicate {
		copies = 2
	}
	for i := range copies {
		delay := r.Delay + time.Duration(draw[3+2*i]*float64(r.Jitter))
		if draw[4+2*i] < r.Reorder {
			delay += HoldBack
			result.held++
		}
		result.delays = append(result.delays, delay)
	}
	return result
}
