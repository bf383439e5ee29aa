package runtime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

// Which notifications a filter lets pass, by change and by the clock.
func TestFilters(t *testing.T) {
	const second = time.Second
	type sent struct {
		after   time.Duration // the one before
		payload string
		passes  bool
	}
	for name, c := range map[string]struct {
		filter runtime.FilterConfig
		sent   []sent
	}{
		"nothing but the first": {runtime.FilterConfig{}, []sent{{0, "a", true}, {second, "b", false}, {time.Hour, "c", false}}},
		"on change": {
			runtime.FilterConfig{OnChange: true},
			[]sent{{0, "a", true}, {second, "a", false}, {0, "b", true}, {0, "bb", true}, {0, "b", true}, {time.Hour, "b", false}},
		},
		"ignored bits": {
			runtime.FilterConfig{OnChange: true, Ignore: map[int]byte{0: 0xFF, 1: 0x0F, 9: 0xFF}},
			[]sent{{0, "\x00\x00", true}, {0, "\x99\x0F", false}, {0, "\x99\x1F", true}, {0, "\x99", true}, {0, "\x98", false}},
		},
		"by time": {
			runtime.FilterConfig{Interval: 5 * second},
			[]sent{{0, "a", true}, {3 * second, "b", false}, {2 * second, "b", true}, {4 * second, "c", false}, {4 * second, "c", true}},
		},
		"by time or change": {
			runtime.FilterConfig{OnChange: true, Interval: 5 * second},
			[]sent{{0, "a", true}, {4 * second, "b", true}, {second, "b", true}, {4 * second, "b", false}, {second, "b", true}},
		},
		"a change resets the time": {
			runtime.FilterConfig{OnChange: true, Interval: 5 * second, ChangeResetsInterval: true},
			[]sent{{0, "a", true}, {4 * second, "b", true}, {second, "b", false}, {4 * second, "b", true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ether := someiptest.NewEther(t)
				o, err := ether.Start(1).Offer(runtime.ServiceConfig{
					Service: key.Service, Instance: key.Instance, Major: key.Major, UDPPort: runtime.AutoPort,
					Events: []runtime.EventConfig{{ID: event, Eventgroups: []uint16{group}}},
				})
				require.NoError(t, err)
				here := ether.Start(2)
				consumer := func(filters map[uint16]runtime.FilterConfig) *consumer {
					return subscribe(t, client(t, here), runtime.SubscribeConfig{Eventgroup: group, Filters: filters})
				}
				filtered, all := consumer(map[uint16]runtime.FilterConfig{event: c.filter}), consumer(nil)
				filtered.until(t, runtime.SubscriptionActive)
				all.until(t, runtime.SubscriptionActive)
				synctest.Wait() // the acknowledgement may overtake that the offering knows of them
				var left uint64
				for i, s := range c.sent {
					time.Sleep(s.after)
					require.NoError(t, o.Notify(event, []byte(s.payload)))
					synctest.Wait()
					require.Len(t, filtered.notes, map[bool]int{true: 1}[s.passes], "%d: %q", i, s.payload)
					if s.passes {
						require.Equal(t, note{event, s.payload, i == 0}, <-filtered.notes)
					} else {
						left++
					}
					require.Equal(t, s.payload, (<-all.notes).payload, "other consumers are not concerned")
				}
				require.Equal(t, left, here.Stats().EventsFiltered)
			})
		})
	}
}

// The first notification after a subscription passes, also where others subscribed to
// the eventgroup before and had it begin with another one.
func TestFilterOfLaterSubscription(t *testing.T) {
	d := someiptest.NewDomain(t)
	o := offer(t, d.Start(1), newServer())
	c := client(t, d.Start(2))
	all := subscribe(t, c, runtime.SubscribeConfig{Eventgroup: group, Events: []uint16{event}})
	all.until(t, runtime.SubscriptionActive)
	eventually(t, func() bool { return o.Subscribers(event) == 1 }, "subscribed")
	require.NoError(t, o.Notify(event, []byte("a")))
	require.Equal(t, note{event, "a", true}, receive(t, all.notes))

	for name, f := range map[string]runtime.FilterConfig{"nothing": {}, "on change": {OnChange: true}} {
		later := subscribe(t, c, runtime.SubscribeConfig{
			Eventgroup: group, Events: []uint16{event}, Filters: map[uint16]runtime.FilterConfig{event: f},
		})
		for range 2 {
			require.NoError(t, o.Notify(event, nil))
			require.Equal(t, note{event, "", false}, receive(t, all.notes))
		}
		require.Equal(t, note{event, "", false}, receive(t, later.notes), name)
		require.Empty(t, later.notes, name)
	}
}
