// Package examples_test runs the examples against foreign implementations.
package examples_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/interop/peers"
	"carisma.dev/gateway/vehicles/hosts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const network = "body"

// The example echo calls a service on vsomeip and serves a client on vsomeip.
func TestEcho(t *testing.T) {
	programs := peers.Need(t, peers.Vsomeip)[0]
	if !hosts.Permitted() {
		t.Skip("network namespaces are not permitted to this user")
	}
	echo := filepath.Join(t.TempDir(), "echo")
	out, err := exec.Command("go", "build", "-o", echo, "../../examples/echo").CombinedOutput()
	require.NoError(t, err, "%s", out)

	addr := func(s string) map[string]netip.Addr {
		return map[string]netip.Addr{network: netip.MustParseAddr(s)}
	}
	w, err := hosts.Namespaces(
		[]hosts.Network{{Name: network, Subnet: netip.MustParsePrefix("10.77.1.0/24"), Multicast: true}},
		[]hosts.Spec{
			{Name: "example", Addresses: addr("10.77.1.9")},
			{Name: "service", Addresses: addr("10.77.1.2")},
			{Name: "client", Addresses: addr("10.77.1.3")},
		})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })

	start(t, w, "service", "10.77.1.2", filepath.Join(programs, "bench_service"), "--instance", "2")
	lines := start(t, w, "example", "10.77.1.9", echo, "-address", "10.77.1.9/24")
	select {
	case line := <-lines:
		require.Equal(t, "hello, return code E_OK", line)
	case <-time.After(20 * time.Second):
		t.Fatal("the example printed nothing")
	}

	result := command("10.77.1.3", filepath.Join(programs, "bench_client"), "--instance", "1", "--calls", "100", "--warmup", "10")
	var answer bytes.Buffer
	result.Stdout, result.Stderr = &answer, os.Stderr
	require.NoError(t, w.Host("client").Start(result))
	require.NoError(t, result.Wait())
	var counts struct{ Calls, Failed int }
	require.NoError(t, json.Unmarshal(answer.Bytes(), &counts), answer.String())
	require.Equal(t, 100, counts.Calls)
	require.Zero(t, counts.Failed)
}

func command(address, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "CARISMA_ADDRESS="+address)
	return cmd
}

// start runs a program on a host until the end of the test and returns the lines
// that it prints.
func start(t *testing.T, w *hosts.World, host, address, program string, args ...string) <-chan string {
	t.Helper()
	cmd := command(address, program, args...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, w.Host(host).Start(cmd))
	lines := make(chan string, 16)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			select {
			case lines <- s.Text():
			default: // nobody reads so many
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
		_ = cmd.Wait() // killed
	})
	return lines
}
