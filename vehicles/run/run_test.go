package run_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/vehicles"
	"carisma.dev/gateway/vehicles/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script writes a program.
func script(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
}

// stays is a program that says that it runs, and does until it is told to end.
const stays = `echo started >&2; trap 'exit 0' TERM; while :; do sleep 0.01; done`

// newRunner prepares the sample vehicle with scripts in place of its programs.
func newRunner(t *testing.T, peers string) (*run.Runner, string) {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	for _, name := range []string{"carisma", "cabin-trip", "cabin-climate"} {
		script(t, filepath.Join(bin, name), stays)
	}
	script(t, filepath.Join(bin, "cabin-cluster"), `echo "cluster at $CARISMA_ADDRESS/$CARISMA_PREFIX_LEN $CARISMA_NETWORK $CARISMA_SD_GROUP:$CARISMA_SD_PORT"; echo broken >&2; exit $FAIL`)
	script(t, filepath.Join(dir, "build", "vsomeip", "ecu"), stays)
	script(t, filepath.Join(dir, "build", "vsomeip", "cluster"), "echo vsomeip")
	v, err := vehicles.Load("../cabin")
	require.NoError(t, err)
	r, err := run.New(v, run.Options{Dir: filepath.Join(dir, "run"), Carisma: filepath.Join(bin, "carisma"), Peers: peers})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r, dir
}

func TestNodeFiles(t *testing.T) {
	r, _ := newRunner(t, "")
	n, err := config.Load(filepath.Join(r.Dir("rear"), "node.yaml"))
	require.NoError(t, err)
	require.Equal(t, "127.77.0.2", n.Address.String())
	require.Equal(t, "127.77.0.1:15010", n.ControlPlane.String())
	require.Equal(t, r.ControlPlane(), n.ControlPlane.String())
	require.Equal(t, r.Egress("rear").Addr(), n.Egress.Address)
	require.Equal(t, r.EgressSocket("rear"), n.Egress.Socket)
	require.Equal(t, "127.77.1.1/24", n.Networks[0].Address.String())
	require.Equal(t, "224.244.77.1", n.Networks[0].SD.Group.String())

	n, err = config.Load(filepath.Join(r.Dir("center"), "node.yaml"))
	require.NoError(t, err)
	require.Equal(t, config.Central, n.Role)
	require.Equal(t, "127.77.0.1:50051", n.Services[0].Address)
	require.Equal(t, "127.77.0.2:50051", r.Listen(r.Vehicle().Component("trip-computer-rear")))
}

func TestProcesses(t *testing.T) {
	r, _ := newRunner(t, "")
	var names []string
	for _, p := range r.Processes() {
		names = append(names, p.Name)
	}
	require.Equal(t, []string{"center/control-plane", "center/gateway", "rear/gateway", "trip-computer", "trip-computer-rear", "climate-ecu", "cluster"}, names)
	require.NoError(t, r.Start())
	require.False(t, r.Process("cluster").Running(), "it is manual")
	ecu := r.Process("climate-ecu")
	require.True(t, ecu.Running())
	require.ErrorContains(t, ecu.Start(), "running already")

	first, ok := ecu.PID()
	require.True(t, ok)
	require.NoError(t, ecu.Signal(syscall.SIGSTOP))
	require.NoError(t, ecu.Signal(syscall.SIGCONT))
	require.NoError(t, ecu.Stop())
	require.False(t, ecu.Running())
	require.NoError(t, ecu.Stop(), "it has ended")
	require.ErrorContains(t, ecu.Signal(syscall.SIGSTOP), "does not run")

	require.NoError(t, ecu.Start())
	second, _ := ecu.PID()
	require.NotEqual(t, first, second)
	require.NoError(t, ecu.Reboot())
	third, _ := ecu.PID()
	require.NotEqual(t, second, third)
	require.NoError(t, ecu.Kill())
	<-ecu.Done()
	_, ok = ecu.PID()
	require.False(t, ok)
	require.Nil(t, r.Process("nothing"))
	require.FileExists(t, filepath.Join(r.Dir("climate-ecu"), "climate-ecu.log"))
}

func TestRun(t *testing.T) {
	r, _ := newRunner(t, "")
	t.Setenv("FAIL", "0")
	var out bytes.Buffer
	require.NoError(t, r.Process("cluster").Run(&out))
	require.Equal(t, "cluster at 127.77.1.3/24 rear-ecu 224.244.77.1:30490\n", out.String())
	t.Setenv("FAIL", "3")
	require.ErrorContains(t, r.Process("cluster").Run(&out), "cluster: exit status 3: broken")
}

func TestPeers(t *testing.T) {
	r, _ := newRunner(t, "vsomeip")
	var out bytes.Buffer
	require.NoError(t, r.Process("cluster").Run(&out))
	require.Equal(t, "vsomeip\n", out.String())
}

func TestMissingProgram(t *testing.T) {
	v, err := vehicles.Load("../cabin")
	require.NoError(t, err)
	for name, want := range map[string]string{
		"no-such-program": `component trip-computer: exec: "no-such-program": executable file not found`,
		"vsomeip/no-such": "component trip-computer: no program vsomeip/no-such in",
	} {
		v.Component("trip-computer").Command[0] = name
		_, err = run.New(v, run.Options{Dir: t.TempDir(), Carisma: "/nowhere/bin/carisma"})
		require.ErrorContains(t, err, want)
		require.True(t, strings.Contains(err.Error(), "vehicle.yaml:"), err)
	}
}
