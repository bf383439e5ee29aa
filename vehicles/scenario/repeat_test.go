package scenario

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"carisma.dev/gateway/mesh/gateway"
	"carisma.dev/gateway/vehicles/hosts"
)

// serve runs a health service and returns a player whose host "here" reaches it.
func serve(t *testing.T) (*Player, *health.Server) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	state, server := health.NewServer(), grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, state)
	reflection.Register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	w, err := hosts.Loopback([]hosts.Spec{{Name: "here"}})
	require.NoError(t, err)
	c, err := newClient(w.Host("here"), lis.Addr().String())
	require.NoError(t, err)
	p := NewPlayer(nil, t.Output())
	p.clients["here"] = c
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		server.Stop()
		require.NoError(t, <-served)
		require.NoError(t, w.Close())
	})
	return p, state
}

func TestRepeat(t *testing.T) {
	p, state := serve(t)
	var response JSON
	response.text = `{"status":"SERVING"}`
	begin := func() {
		t.Helper()
		lines, err := p.repeat(t.Context(), t.Context(), &Repeat{
			As: "checks", Target: Target{Host: "here", Method: "grpc.health.v1.Health/Check"}, Response: response, Every: time.Millisecond,
		})
		require.NoError(t, err)
		require.Equal(t, []string{"grpc.health.v1.Health/Check {}"}, lines)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()

	begin()
	lines, err := p.finish(ctx, &Finish{Of: "checks"})
	require.NoError(t, err)
	require.Equal(t, []string{"checks: none of the calls failed"}, lines)
	_, err = p.finish(ctx, &Finish{Of: "checks"})
	require.ErrorContains(t, err, `no calls "checks" are being made`)

	// The last call sees all that happened before it was asked for.
	begin()
	state.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	_, err = p.finish(ctx, &Finish{Of: "checks"})
	require.ErrorContains(t, err, `expected {"status":"SERVING"}, got {"status":"NOT_SERVING"}`)
	require.Regexp(t, `^[1-9]\d* of \d+ calls failed, the first was call \d+: `, err.Error())

	begin() // the player ends what no step has ended
}

func TestSteps(t *testing.T) {
	lines, err := steps(func(report func(gateway.Step)) error {
		report(gateway.Step{Name: "added", Detail: "at an address"})
		report(gateway.Step{Name: "healthy"})
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"→ added, healthy"}, lines)
	_, err = steps(func(report func(gateway.Step)) error {
		report(gateway.Step{Name: "added", Late: []string{"rear"}})
		return nil
	})
	require.ErrorContains(t, err, "the proxies of rear did not acknowledge in time")
	_, err = steps(func(func(gateway.Step)) error { return errors.New("no gateway answers") })
	require.EqualError(t, err, "no gateway answers")
}
