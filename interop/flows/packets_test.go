package flows_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/judge"
	"carisma.dev/gateway/interop/peers"
	"carisma.dev/gateway/mesh/gateway"
	"carisma.dev/gateway/vehicles/hosts"
	"carisma.dev/gateway/vehicles/run"
	"carisma.dev/gateway/vehicles/scenario"
)

// sdPorts are the ports that tshark cannot know.
var sdPorts = judge.Ports{UDP: []uint16{30490}}

// All flows with vsomeip as ECU and as client, judged by tshark.
func TestPackets(t *testing.T) {
	peers.Need(t, peers.Envoy, peers.Vsomeip)
	needNamespaces(t)
	r := prepare(t, run.Options{Namespaces: true, Peers: "vsomeip"})
	_, report := judged(t, r, loadScenario(t))
	require.Positive(t, report.Count(func(m judge.Message) bool { return m.TCP }), "SetVents and Average go over TCP")
}

// judged plays a scenario on a vehicle of which nothing runs yet. tshark decodes as
// many SOME/IP messages as the gateway says it has sent and received, and finds
// nothing wrong; and no SD message reaches center, which is not on the ECU's
// network.
func judged(t *testing.T, r *run.Runner, s *scenario.Scenario) (transcript string, report *judge.Report) {
	t.Helper()
	dir := t.ArtifactDir()
	ecus := record(t, r, "rear", "rear-ecu", filepath.Join(dir, "ecus.pcap"))
	backbone := record(t, r, "center", "backbone", filepath.Join(dir, "backbone.pcap"))
	// The gateway listens before anybody speaks, so that it hears every message.
	for _, name := range []string{"center/control-plane", "center/gateway", "rear/gateway"} {
		require.NoError(t, r.Process(name).Start())
	}
	require.Eventually(t, func() bool {
		s, err := status(t, r)
		return err == nil && len(s.Networks) == 1 && s.Networks[0].Up
	}, upTimeout, 10*time.Millisecond)
	for _, name := range []string{"trip-computer", "climate-ecu"} {
		require.NoError(t, r.Process(name).Start())
	}
	transcript = play(t, r, s)
	require.NoError(t, r.Process("climate-ecu").Stop())

	// The gateway goes on offering, so its counters are read on both sides of the
	// end of the recording.
	least := count(t, r)
	_, err := ecus.Stop()
	require.NoError(t, err)
	most := count(t, r)
	_, err = backbone.Stop()
	require.NoError(t, err)

	report = check(t, filepath.Join(dir, "ecus.pcap"))
	require.NoError(t, report.Err())
	all := len(report.Messages)
	sd := report.Count(judge.Message.SD)
	t.Logf("%d SOME/IP messages, %d of them of service discovery", all, sd)
	between(t, least.discovery, sd, most.discovery)
	between(t, least.data, all-sd, most.data)

	onBackbone := check(t, filepath.Join(dir, "backbone.pcap"))
	require.NoError(t, onBackbone.Err())
	require.Empty(t, onBackbone.Messages, "SOME/IP on the backbone")
	return transcript, report
}

// record records what a host's device carries.
func record(t *testing.T, r *run.Runner, host, network, file string) *judge.Capture {
	t.Helper()
	c, err := judge.Start(file, hosts.DeviceName(network), r.Host(host).Do)
	require.NoError(t, err)
	return c
}

func check(t *testing.T, file string) *judge.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	report, err := judge.Check(ctx, file, sdPorts)
	require.NoError(t, err)
	return report
}

// counts are the messages that crossed the device of rear's gateway.
type counts struct{ discovery, data int }

func status(t *testing.T, r *run.Runner) (*gateway.Status, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return gateway.FetchStatus(ctx, filepath.Join(r.Dir("rear"), "state"))
}

func count(t *testing.T, r *run.Runner) counts {
	t.Helper()
	s, err := status(t, r)
	require.NoError(t, err)
	require.Len(t, s.Networks, 1)
	data, sd := s.Networks[0].Counters, s.Networks[0].Discovery
	require.Zero(t, data.Malformed)
	require.Zero(t, sd.Malformed)
	return counts{int(sd.Sent + sd.Received), int(data.Sent + data.Received)}
}

func between(t *testing.T, least, n, most int) {
	t.Helper()
	require.GreaterOrEqual(t, n, least)
	require.LessOrEqual(t, n, most)
}
