package judge_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/judge"
	"carisma.dev/gateway/interop/peers"
	"carisma.dev/gateway/vehicles/hosts"
)

// vsomeip calls vsomeip from one namespace to another; tshark finds each call
// and each answer and nothing to complain about. It shows that the peer, the
// namespaces and the judge work, before they are used on the gateway.
func TestVsomeipToVsomeip(t *testing.T) {
	const (
		sdGroup = "224.244.77.9"
		sdPort  = 30490
		calls   = 100
	)
	programs := peers.Need(t, peers.Vsomeip)[0]
	if !hosts.Permitted() {
		t.Skip("network namespaces are not permitted to this user")
	}
	w, err := hosts.Namespaces(
		[]hosts.Network{{Name: "net", Subnet: netip.MustParsePrefix("10.77.1.0/24"), Multicast: true}},
		[]hosts.Spec{
			{Name: "service", Addresses: map[string]netip.Addr{"net": netip.MustParseAddr("10.77.1.1")}},
			{Name: "client", Addresses: map[string]netip.Addr{"net": netip.MustParseAddr("10.77.1.2")}},
		})
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()

	file := filepath.Join(t.TempDir(), "run.pcap")
	capture, err := judge.Start(file, hosts.DeviceName("net"), w.Host("client").Do)
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	service := exec.CommandContext(ctx, filepath.Join(programs, "bench_service"), "--unicast", "10.77.1.1", "--sd-multicast", sdGroup)
	require.NoError(t, w.Host("service").Start(service))
	client := exec.CommandContext(ctx, filepath.Join(programs, "bench_client"), "--unicast", "10.77.1.2", "--sd-multicast", sdGroup,
		"--calls", "90", "--warmup", "10")
	var out, log lines
	client.Stdout, client.Stderr = &out, &log
	require.NoError(t, w.Host("client").Start(client))
	require.NoError(t, client.Wait(), "%s", &log)
	require.NoError(t, service.Process.Signal(syscall.SIGTERM))
	require.NoError(t, service.Wait())
	_, err = capture.Stop()
	require.NoError(t, err)

	var result struct {
		Calls, Failed int
		P50           float64 `json:"p50_us"`
	}
	require.NoError(t, json.Unmarshal(out, &result))
	require.Equal(t, 90, result.Calls)
	require.Zero(t, result.Failed)
	require.Positive(t, result.P50)

	report, err := judge.Check(ctx, file, judge.Ports{UDP: []uint16{sdPort}})
	require.NoError(t, err)
	require.NoError(t, report.Err())
	require.Equal(t, calls, report.Count(func(m judge.Message) bool { return m.Service == 0x6001 && m.Type == 0x00 }))
	require.Equal(t, calls, report.Count(func(m judge.Message) bool { return m.Service == 0x6001 && m.Type == 0x80 }))
	require.Positive(t, report.Count(judge.Message.SD))
}

// lines keeps what a program prints.
type lines []byte

func (l *lines) Write(p []byte) (int, error) {
	*l = append(*l, p...)
	return len(p), nil
}

func (l *lines) String() string { return string(*l) }
