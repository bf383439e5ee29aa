package bridge_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/status"
)

// bench is a table with three fake adapters.
type bench struct {
	*bridge.Table
	t               *testing.T
	ecu, body, mesh *fakeAdapter
}

// run runs a table in a bubble and stops it before the bubble ends.
func run(t *testing.T, policy bridge.Policy, test func(b bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := bench{bridge.NewTable(bridge.Config{Policy: policy}), t, newFakeAdapter(), newFakeAdapter(), newFakeAdapter()}
		require.NoError(t, b.Attach(ecu, b.ecu))
		require.NoError(t, b.Attach(body, b.body))
		require.NoError(t, b.Attach(mesh, b.mesh))
		require.Error(t, b.Attach(mesh, b.mesh))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.Run(ctx) }()
		test(b)
		cancel()
		require.NoError(t, <-done)
	})
}

func (b bench) offerLeft(svc bridge.Service) {
	b.ecu.offers <- bridge.Offer{Instance: left(), Service: svc, Since: since(1)}
	synctest.Wait()
}

func (b bench) stopLeft(reason string) {
	b.ecu.offers <- bridge.Offer{Instance: left(), Reason: reason, Since: since(2)}
	synctest.Wait()
}

func TestTableExposesWhereRulesAllow(t *testing.T) {
	run(t, nil, func(b bench) {
		t := b.t
		b.offerLeft(newFakeService())
		require.NotNil(t, b.mesh.service(leftName))
		require.Nil(t, b.ecu.service(leftName), "never where it comes from")
		require.Nil(t, b.body.service(leftName), "another network of the protocol only when configured")

		plan := b.Plan()
		require.Len(t, plan, 1)
		require.True(t, plan[0].Up)
		require.Equal(t, []bridge.Exposure{
			{On: body, State: bridge.Denied, Since: since(1), Reason: "it is a SOME/IP service: exposing it on another SOME/IP network must be configured"},
			{On: mesh, State: bridge.Exposed, Since: since(1)},
		}, plan[0].Exposures)

		out, err := b.mesh.service(leftName).Invoke(t.Context(), climate.Methods[0], []byte("x"))
		require.NoError(t, err)
		require.Equal(t, "re:x", string(out))
	})
}

// An instance that comes back through the mesh is not exposed on the network
// that it was first seen on, by this gateway or another.
func TestTableLoopRule(t *testing.T) {
	everything := func(bridge.Instance, bridge.Network) string { return "" }
	run(t, everything, func(b bench) {
		t := b.t
		b.mesh.offers <- bridge.Offer{Instance: left(), Service: newFakeService(), Since: since(1)}
		synctest.Wait()
		require.Nil(t, b.ecu.service(leftName))
		require.Nil(t, b.mesh.service(leftName))
		require.NotNil(t, b.body.service(leftName))
		require.Equal(t, bridge.Exposure{
			On: ecu, State: bridge.Denied, Since: since(1),
			Reason: "it comes from that network, seen there by node rear",
		}, b.Plan()[0].Exposures[0])
	})
}

func TestTableGoingAndComing(t *testing.T) {
	run(t, nil, func(b bench) {
		t := b.t
		b.offerLeft(newFakeService())
		svc := b.mesh.service(leftName)
		ended := make(chan error, 1)
		go func() { ended <- svc.Watch(t.Context(), airQuality, func(bridge.Item) {}) }()
		synctest.Wait()

		b.stopLeft("StopOffer")
		var gone *status.Error
		require.ErrorAs(t, <-ended, &gone)
		require.Equal(t, codes.Unavailable, gone.Code)
		require.Equal(t, "StopOffer", gone.Reason)
		require.Equal(t, since(2), gone.Since)
		_, err := svc.Invoke(t.Context(), climate.Methods[0], nil)
		require.Equal(t, gone, err)
		require.Equal(t, gone, svc.Watch(t.Context(), airQuality, func(bridge.Item) {}))

		require.Nil(t, b.mesh.service(leftName))
		require.Equal(t, gone, b.mesh.causes[leftName])
		plan := b.Plan()[0]
		require.False(t, plan.Up)
		require.Equal(t, bridge.Exposure{On: mesh, State: bridge.Waiting, Reason: "StopOffer", Since: since(2)}, plan.Exposures[1])

		b.offerLeft(newFakeService())
		require.NotNil(t, b.mesh.service(leftName))
		b.offerLeft(newFakeService()) // without a stop between
		require.NotNil(t, b.mesh.service(leftName))
		b.stopLeft("TTL expired")
		b.stopLeft("twice")
		require.Equal(t, "TTL expired", b.Plan()[0].Reason)
	})
}

func TestTableRetriesExposure(t *testing.T) {
	run(t, nil, func(b bench) {
		t := b.t
		b.mesh.set(errors.New("in use"))
		b.offerLeft(newFakeService())
		x := b.Plan()[0].Exposures[1]
		require.Equal(t, bridge.Failed, x.State)
		require.Equal(t, "in use", x.Reason)
		time.Sleep(time.Minute)
		require.Equal(t, x, b.Plan()[0].Exposures[1], "since when it fails")
		require.Less(t, b.mesh.set(nil), 20, "with growing pauses")
		time.Sleep(10 * time.Second)
		require.NotNil(t, b.mesh.service(leftName))
		require.Equal(t, bridge.Exposed, b.Plan()[0].Exposures[1].State)
	})
}

func TestTableExposesOnceItCan(t *testing.T) {
	run(t, nil, func(b bench) {
		t := b.t
		over := make(chan struct{})
		b.mesh.set(&bridge.NotYetError{Err: errors.New("no address"), Over: over})
		b.offerLeft(newFakeService())
		time.Sleep(time.Minute)
		require.Equal(t, bridge.Failed, b.Plan()[0].Exposures[1].State)
		require.Equal(t, "no address", b.Plan()[0].Exposures[1].Reason)
		require.Equal(t, 1, b.mesh.set(nil))
		began := time.Now()
		close(over)
		synctest.Wait()
		require.NotNil(t, b.mesh.service(leftName))
		require.Equal(t, began, time.Now(), "at once")
		time.Sleep(time.Second)
		require.Equal(t, bridge.Exposed, b.Plan()[0].Exposures[1].State)
	})
}

func TestTableKeepsWhatIsNotExposable(t *testing.T) {
	run(t, nil, func(b bench) {
		t := b.t
		b.mesh.set(&bridge.NotExposableError{Reason: "no ids"})
		b.offerLeft(newFakeService())
		time.Sleep(time.Minute)
		require.Equal(t, bridge.Denied, b.Plan()[0].Exposures[1].State)
		require.Equal(t, "no ids", b.Plan()[0].Exposures[1].Reason)
		require.Equal(t, 1, b.mesh.set(nil))
	})
}

func TestTableImportFails(t *testing.T) {
	run(t, nil, func(b bench) {
		t := b.t
		b.offerLeft(newFakeService())
		b.ecu.fail <- errors.New("network down")
		synctest.Wait()
		plan := b.Plan()[0]
		require.False(t, plan.Up)
		require.Equal(t, "SOME/IP network ecu failed: network down", plan.Reason)
		time.Sleep(time.Second) // the import is tried again
		b.offerLeft(newFakeService())
		require.True(t, b.Plan()[0].Up)
	})
}

func TestTableWatch(t *testing.T) {
	run(t, nil, func(b bench) {
		t := b.t
		b.offerLeft(newFakeService())
		var got []bridge.State
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.Watch(ctx, func(s bridge.State) { got = append(got, s) })
		}()
		synctest.Wait()
		b.stopLeft("StopOffer")
		b.offerLeft(newFakeService())
		cancel()
		<-done
		require.Len(t, got, 3)
		require.True(t, got[0].Up)
		require.False(t, got[0].FromMesh())
		require.Equal(t, ecu, got[0].Via)
		require.False(t, got[1].Up)
		require.Equal(t, "StopOffer", got[1].Reason)
		require.True(t, got[2].Up)
	})
}
