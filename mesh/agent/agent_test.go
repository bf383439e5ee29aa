package agent_test

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/agent"
	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type node struct {
	*agent.Agent
	ids      chan api.Identity
	services chan []agent.Service
	ended    chan error
	stop     func()
}

func start(t *testing.T, c *central, state string, expected ...[]byte) *node {
	t.Helper()
	n := &node{
		ids: make(chan api.Identity, 16), services: make(chan []agent.Service, 64), ended: make(chan error, 1),
	}
	var err error
	n.Agent, err = agent.New(agent.Config{
		Name: "rear", Address: netip.MustParseAddr("10.77.0.2"), ControlPlane: c.addr, State: state,
		OnIdentity: func(id api.Identity) { n.ids <- id },
		OnServices: func(s []agent.Service) { n.services <- s },
	})
	require.NoError(t, err)
	for _, set := range expected {
		n.Expect(set)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { n.ended <- n.Run(ctx) })
	n.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(n.stop)
	return n
}

func instance(name string, up bool) agent.Instance {
	return agent.Instance{
		Interface: "cabin.climate.v1.Climate", Instance: name, Address: "unix:/gw.sock",
		Descriptors: []byte("descriptors of climate"), Up: up, Reason: map[bool]string{false: "StopOffer"}[up],
		Since:  time.Unix(1, 0),
		Origin: &meshv1.Origin{Protocol: meshv1.Protocol_SOMEIP, Network: "rear-ecu", ServiceId: 0x4001, InstanceId: 1},
	}
}

const left, right = "left.cabin.climate.v1.climate", "right.cabin.climate.v1.climate"

// CAR-6, 7, 12, 15: registration, then the digest, then deltas, all with the id.
func TestRegistersThenAnnounces(t *testing.T) {
	c := newCentral(t)
	n := start(t, c, t.TempDir())
	require.Equal(t, api.Identity{ID: "id-1", Epoch: 1}, <-n.ids)
	n.SetServices("rear-ecu", []agent.Instance{instance("left", true), instance("right", true)})
	require.NoError(t, n.Flush(t.Context()))
	c.lock(func() {
		require.Equal(t, "10.77.0.2", c.registers[0].GetAddress())
		require.NotEmpty(t, c.registers[0].GetBootId())
		require.NotZero(t, c.registers[0].GetBootTime())
		require.Len(t, c.services, 2)
		require.Equal(t, 1, c.synced)
		s := c.services[left]
		require.Equal(t, meshv1.InstanceState_INSTANCE_UP, s.GetState())
		require.Equal(t, hash([]byte("descriptors of climate")), s.GetDescriptors())
		require.Contains(t, c.sets, s.GetDescriptors())
	})

	before := c.services[left].GetGeneration()
	n.Set("rear-ecu", instance("left", false))
	n.Remove("rear-ecu", right)
	require.NoError(t, n.Flush(t.Context()))
	c.lock(func() {
		require.Len(t, c.services, 1)
		s := c.services[left]
		require.Equal(t, meshv1.InstanceState_INSTANCE_DOWN, s.GetState())
		require.Equal(t, "StopOffer", s.GetReason())
		require.Equal(t, int64(1), s.GetSince().GetSeconds())
		require.Greater(t, s.GetGeneration(), before)
		require.Equal(t, 1, c.synced, "changes are deltas (CAR-15)")
	})
	updates := len(c.updates)
	n.Set("rear-ecu", instance("left", false))
	require.NoError(t, n.Flush(t.Context()))
	require.Len(t, c.updates, updates, "what did not change is not sent")
}

// What may come is stored before it comes, after what is there.
func TestExpectedDescriptors(t *testing.T) {
	c := newCentral(t)
	set := []byte("descriptors of what may come")
	start(t, c, t.TempDir(), set)
	c.await(t, func() bool { return c.sets[hash(set)] != nil })
	require.Equal(t, 1, c.synced)
}

func TestSourcesOfOneName(t *testing.T) {
	c := newCentral(t)
	n := start(t, c, t.TempDir())
	n.Set("a", instance("left", true))
	other := instance("left", true)
	other.Address = "unix:/other.sock"
	n.Set("b", other)
	require.Equal(t, "unix:/gw.sock", n.Services()[0].GetService().GetAddress(), "the first counts")
	n.Set("a", instance("left", false))
	require.Equal(t, "unix:/other.sock", n.Services()[0].GetService().GetAddress(), "until it is down")
	n.SetServices("b", nil)
	n.Remove("a", left)
	require.Empty(t, n.Services())
	require.NoError(t, n.Flush(t.Context()))
	require.Empty(t, c.services)
}

// CAR-10: a restart resumes, an unknown id registers anew.
func TestResumes(t *testing.T) {
	c := newCentral(t)
	state := t.TempDir()
	n := start(t, c, state)
	<-n.ids
	n.stop()
	require.NoError(t, <-n.ended)

	n = start(t, c, state)
	require.Equal(t, api.Identity{ID: "id-1", Epoch: 1}, <-n.ids, "held before central is asked")
	require.Equal(t, api.Identity{ID: "id-1", Epoch: 2}, <-n.ids)
	n.stop()
	c.lock(func() {
		require.Equal(t, "id-1", c.registers[1].GetResumeId())
		require.EqualValues(t, 1, c.registers[1].GetResumeEpoch())
		c.id = api.Identity{}
	})

	n = start(t, c, state)
	require.Equal(t, "id-1", (<-n.ids).ID)
	require.Equal(t, "id-3", (<-n.ids).ID)
}

func TestStateOfAnotherNode(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(state, "node.json"), []byte(`{"name":"center","id":"x","epoch":1}`), 0o600))
	_, err := agent.New(agent.Config{Name: "rear", State: state})
	require.ErrorContains(t, err, `of node "center"`)
}

// CAR-10: told that another registration took its place, the agent stops.
func TestStopsWhenSuperseded(t *testing.T) {
	c := newCentral(t)
	n := start(t, c, t.TempDir())
	<-n.ids
	c.lock(func() {
		c.endErr = status.Error(codes.Aborted, "superseded by id-9")
		close(c.end)
	})
	err := <-n.ended
	require.ErrorIs(t, err, agent.ErrSuperseded)
	require.ErrorContains(t, err, "superseded by id-9")
	require.Len(t, c.registers, 1)
}

func TestRefusedForGood(t *testing.T) {
	c := newCentral(t)
	c.failures["Register"] = status.Error(codes.InvalidArgument, "bad address")
	n := start(t, c, t.TempDir())
	var refused *agent.RefusedError
	require.ErrorAs(t, <-n.ended, &refused)
}

func TestReconnects(t *testing.T) {
	c := newCentral(t)
	n := start(t, c, t.TempDir())
	<-n.ids
	n.Set("rear-ecu", instance("left", true))
	require.NoError(t, n.Flush(t.Context()))
	<-n.services

	c.stop()
	require.Eventually(t, func() bool { return !n.Status().Connected }, 5*time.Second, time.Millisecond)
	require.Equal(t, codes.Unavailable, status.Code(n.Invoke(t.Context(), "/x/Y", nil, nil)))
	require.NotEmpty(t, n.Status().Reason)
	n.Set("rear-ecu", instance("right", true))
	clear(c.services)
	clear(c.sets) // a lost store
	c.start(t, c.addr)
	require.Equal(t, api.Identity{ID: "id-1", Epoch: 2}, <-n.ids)
	require.NoError(t, n.Flush(t.Context()))
	c.lock(func() {
		require.Len(t, c.services, 2)
		require.Len(t, c.sets, 1)
	})
	<-n.services
	require.Equal(t, []bool{false, true}, c.held, "CAR-50")
	require.Equal(t, []int{1, 2}, c.before, "what it has is not lost to itself")
	require.True(t, n.Status().Connected)
}

// A control plane that is frozen is left after the time of a lease.
func TestSilenceEndsTheSession(t *testing.T) {
	c := newCentral(t)
	n := start(t, c, t.TempDir())
	<-n.ids
	c.lock(func() { c.mute = true })
	c.await(t, func() bool { return len(c.registers) == 2 })
	c.lock(func() { c.mute = false })
	<-n.ids
}

func TestRefusalsAreShown(t *testing.T) {
	c := newCentral(t)
	c.refuse[left] = "the name is taken"
	n := start(t, c, t.TempDir())
	n.Set("rear-ecu", instance("left", true))
	require.NoError(t, n.Flush(t.Context()))
	require.Equal(t, "the name is taken", n.Status().Refused[0].GetReason())
	n.Remove("rear-ecu", left)
	require.NoError(t, n.Flush(t.Context()))
	require.Empty(t, n.Status().Refused)
}

func TestFollowsTheMesh(t *testing.T) {
	c := newCentral(t)
	set := []byte("descriptors of trip")
	c.sets[hash(set)] = set
	trip := &meshv1.MeshService{NodeId: "id-7", NodeName: "center", Service: &meshv1.ServiceInstance{
		Name: "default.cabin.trip.v1.tripcomputer", Descriptors: hash(set),
	}}
	c.others = []*meshv1.MeshService{trip}
	state := t.TempDir()
	n := start(t, c, state)
	got := <-n.services
	require.Len(t, got, 1)
	require.Equal(t, set, got[0].Descriptors)

	c.tell(&meshv1.WatchServicesResponse{Set: []*meshv1.MeshService{{
		NodeId: "id-8", Service: &meshv1.ServiceInstance{Name: "a", Descriptors: hash([]byte("unknown"))},
	}}})
	got = <-n.services
	require.Len(t, got, 2)
	require.Nil(t, got[0].Descriptors, "without them it is still known")
	c.tell(&meshv1.WatchServicesResponse{Removed: []*meshv1.ServiceKey{{Name: trip.GetService().GetName(), NodeId: "id-7"}}})
	require.Len(t, <-n.services, 1)
	n.stop()

	gets := c.gets
	n = start(t, c, state)
	require.Equal(t, "a", (<-n.services)[0].GetService().GetName(), "what was kept")
	require.Equal(t, set, (<-n.services)[0].Descriptors)
	require.Equal(t, gets, c.gets, "from the cache on disk")
}
