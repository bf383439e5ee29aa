package runtime

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/endpoint"
)

// unmet is a socket whose peer has no association for a while.
type unmet struct {
	endpoint.PacketSocket

	met         atomic.Bool
	tries, sent atomic.Int64
}

func (u *unmet) Send(netip.AddrPort, []byte) error {
	u.tries.Add(1)
	if !u.met.Load() {
		return errors.New("no association")
	}
	u.sent.Add(1)
	return nil
}

// The value of a field waits for an association once, however often the peer subscribes
// meanwhile, and also where the field has its first value only then.
func TestInitialValueWaitsOnce(t *testing.T) {
	for name, set := range map[string]bool{"before": true, "after": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &Network{cfg: NetworkConfig{MaxMessage: 1 << 16}}
				o := &Offering{n: n, wiring: &wiring{dtls: struct{ endpoint.PacketLayer }{}}}
				e := &event{o: o, cfg: EventConfig{ID: 0x8001, Field: true}}
				o.events = map[uint16]*event{0x8001: e}
				u := &unmet{}
				w := way{n: n, udp: u}
				if set {
					require.NoError(t, o.SetField(0x8001, []byte("a")))
				}
				for range 100 {
					e.setTargets(nil)
					e.setTargets([]way{w})
					e.initial(w)
				}
				if !set {
					require.NoError(t, o.SetField(0x8001, []byte("a")))
				}
				time.Sleep(10*initialPause + 1)
				require.LessOrEqual(t, u.tries.Load(), int64(12))
				u.met.Store(true)
				time.Sleep(time.Hour)
				synctest.Wait()
				require.EqualValues(t, 1, u.sent.Load())

				u.met.Store(false)
				e.initial(w)
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Empty(t, e.late, "it gives up")
				require.EqualValues(t, 1, n.stats.sendErrors.Load())
				e.initial(w)
				e.setTargets(nil)
				time.Sleep(initialPause)
				synctest.Wait()
				require.Empty(t, e.late, "it left")
			})
		})
	}
}
