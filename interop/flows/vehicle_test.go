// Package flows_test shows the flows of the sample vehicle against foreign
// implementations: Envoy as the proxy, vsomeip as ECU and as SOME/IP client,
// grpcurl as gRPC client, tshark as judge of the packets.
package flows_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/interop/peers"
	"carisma.dev/gateway/vehicles"
	"carisma.dev/gateway/vehicles/hosts"
	"carisma.dev/gateway/vehicles/run"
	"carisma.dev/gateway/vehicles/scenario"
)

var update = flag.Bool("update", false, "write the transcript of the scenario as the golden file")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	cabin  = "../../vehicles/cabin"
	golden = cabin + "/scenario.golden"
	// upTimeout bounds the start of the vehicle until its services are reachable.
	upTimeout = 30 * time.Second
)

// program returns the path of one of our programs.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../bin", name))
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skip("make build builds it:", err)
	}
	return path
}

func needNamespaces(t *testing.T) {
	t.Helper()
	if !hosts.Permitted() {
		t.Skip("network namespaces are not permitted to this user")
	}
}

// up runs the sample vehicle for a test and shows its logs if the test fails.
func up(t *testing.T, o run.Options) *run.Runner {
	t.Helper()
	r := prepare(t, o)
	require.NoError(t, r.Start())
	return r
}

// prepare makes the hosts of the sample vehicle, on which nothing runs yet.
func prepare(t *testing.T, o run.Options) *run.Runner {
	t.Helper()
	v, err := vehicles.Load(cabin)
	require.NoError(t, err)
	return prepareVehicle(t, v, o)
}

// prepareVehicle is prepare for a vehicle that differs from the sample.
func prepareVehicle(t *testing.T, v *vehicles.Vehicle, o run.Options) *run.Runner {
	t.Helper()
	o.Dir = shortTempDir(t)
	o.Carisma = program(t, "carisma")
	o.Envoy = peers.Need(t, peers.Envoy)[0]
	r, err := run.New(v, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.Close())
		if t.Failed() {
			showLogs(t, o.Dir)
		}
	})
	return r
}

// shortTempDir is a directory whose path is short enough for Unix sockets.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "flows-") //nolint:usetesting // T.TempDir has the test's name in it
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// logTail is how much of each log a failed test shows.
const logTail = 4 << 10

func showLogs(t *testing.T, dir string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "*", "*.log"))
	require.NoError(t, err)
	more, err := filepath.Glob(filepath.Join(dir, "*", "state", "*.log"))
	require.NoError(t, err)
	for _, path := range append(logs, more...) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		t.Logf("%s:\n%s", path, data[max(0, len(data)-logTail):])
	}
}

// play plays steps of a scenario and returns the transcript.
func play(t *testing.T, r *run.Runner, s *scenario.Scenario) string {
	t.Helper()
	var transcript bytes.Buffer
	p := scenario.NewPlayer(r, &transcript)
	err := p.Play(t.Context(), s)
	require.NoError(t, p.Close())
	require.NoError(t, err, transcript.String())
	return transcript.String()
}

func loadScenario(t *testing.T) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Load(cabin+"/scenario.yaml", nil)
	require.NoError(t, err)
	return s
}

// waitUp waits until the whole vehicle is reachable from an HPC.
func waitUp(t *testing.T, r *run.Runner, host string) {
	t.Helper()
	play(t, r, &scenario.Scenario{Title: "up", Steps: []scenario.Step{{
		Name: "everything is up", Within: upTimeout,
		Wait: &scenario.Wait{Host: host, Up: []string{
			"left.cabin.climate.v1.climate", "right.cabin.climate.v1.climate", "default.cabin.trip.v1.tripcomputer",
		}},
	}}})
}

// runCommand runs a program to its end and returns what it wrote.
func runCommand(t *testing.T, timeout time.Duration, argv ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}
