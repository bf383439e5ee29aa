package agent_test

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"carisma.dev/gateway/mesh/agent"
)

type report struct {
	up     bool
	reason string
}

func probe(t *testing.T, address string) <-chan report {
	t.Helper()
	reports := make(chan report, 16)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		err := agent.Probe(ctx, address, "x.v1.X", func(up bool, reason string) { reports <- report{up, reason} })
		if err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return reports
}

func serve(t *testing.T, network, address string, h grpc_health_v1.HealthServer) (string, func()) {
	t.Helper()
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	srv := grpc.NewServer()
	if h != nil {
		grpc_health_v1.RegisterHealthServer(srv, h)
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) })
	stop := func() { srv.Stop(); wg.Wait() }
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

func TestProbeByHealth(t *testing.T) {
	t.Parallel()
	h := health.NewServer()
	path := filepath.Join(t.TempDir(), "s.sock")
	serve(t, "unix", path, h)
	reports := probe(t, "unix:"+path)
	require.Equal(t, report{up: true}, <-reports, "the interface is not known to it, the server is")
	h.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	require.Equal(t, report{false, "the service says NOT_SERVING"}, <-reports)
}

func TestProbeByConnection(t *testing.T) {
	t.Parallel()
	addr, stop := serve(t, "tcp", "127.0.0.1:0", nil)
	reports := probe(t, addr)
	require.Equal(t, report{up: true}, <-reports, "a server without health")
	stop()
	r := <-reports
	require.False(t, r.up)
	require.Contains(t, r.reason, "refused")
	serve(t, "tcp", addr, nil)
	require.Equal(t, report{up: true}, <-reports)
}

func TestProbeOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	r := <-probe(t, "unix:"+filepath.Join(t.TempDir(), "none.sock"))
	require.False(t, r.up)
	require.Contains(t, r.reason, "no such file")
}
