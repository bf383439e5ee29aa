package envoy_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/mesh/envoy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// program returns a script that is Envoy as far as Find can tell, and whose run
// is the given shell text.
func program(t *testing.T, version, run string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "envoy")
	text := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '" + version + "'; exit 0; fi\n" + run + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

func TestFind(t *testing.T) {
	const good = "envoy  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL"
	t.Setenv(envoy.Variable, program(t, good, ""))
	path, v, err := envoy.Find(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, os.Getenv(envoy.Variable), path)
	require.Equal(t, "1.40.0", v.String())

	for name, c := range map[string]struct{ path, want string }{
		"old":     {program(t, "envoy  version: 9e55/1.39.2/Clean", ""), "1.39.2 is too old"},
		"missing": {"/nowhere/envoy", "no such file"},
		"other":   {program(t, "nginx 1.2", ""), "not Envoy's"},
	} {
		_, _, err := envoy.Find(t.Context(), c.path)
		var pe *envoy.ProgramError
		require.ErrorAs(t, err, &pe, name)
		require.ErrorContains(t, err, c.want, name)
		require.ErrorContains(t, err, envoy.Variable, name)
		require.ErrorContains(t, err, "--envoy", name)
	}
	t.Setenv(envoy.Variable, "")
	t.Setenv("PATH", "")
	_, _, err = envoy.Find(t.Context(), "")
	require.ErrorContains(t, err, `none named "envoy" in PATH`)
}

type run struct {
	*envoy.Supervisor
	stop func()
}

func start(t *testing.T, cfg envoy.Config) run {
	t.Helper()
	s, err := envoy.New(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop := func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return run{s, stop}
}

func (r run) await(t *testing.T, cond func(envoy.State) bool) envoy.State {
	t.Helper()
	require.Eventually(t, func() bool { return cond(r.State()) }, patience, 5*time.Millisecond)
	return r.State()
}

func live(pidNot int) func(envoy.State) bool {
	return func(s envoy.State) bool { return s.Phase == envoy.Live && s.PID != pidNot }
}

func TestFailureIsExplained(t *testing.T) {
	dir := t.TempDir()
	r := start(t, envoy.Config{
		Program: program(t, "", "echo '[info] x'; echo '[critical] cannot bind'; exit 3"),
		State:   dir, ADSSocket: filepath.Join(dir, "ads.sock"), NodeName: "rear",
	})
	require.Equal(t, envoy.Waiting, r.State().Phase, "no id, no Envoy (CAR-11)")
	r.SetNodeID("id-1")
	s := r.await(t, func(s envoy.State) bool { return s.Phase == envoy.Failed && s.Restarts >= 2 })
	require.Contains(t, s.Reason, "exit status 3")
	require.Contains(t, s.Reason, "[critical] cannot bind")
	require.NotContains(t, s.Reason, "[info]")
}

// realEnvoy returns the Envoy that the environment names.
func realEnvoy(t *testing.T) (string, envoy.Version) {
	t.Helper()
	if os.Getenv(envoy.Variable) == "" {
		t.Skipf("%s names no Envoy: interop/peers/get.sh envoy gets one", envoy.Variable)
	}
	path, v, err := envoy.Find(t.Context(), "")
	require.NoError(t, err)
	return path, v
}

func realConfig(t *testing.T) envoy.Config {
	t.Helper()
	path, v := realEnvoy(t)
	dir := t.TempDir()
	ads := filepath.Join(dir, "ads.sock")
	serveEmptyADS(t, ads)
	return envoy.Config{
		Program: path, Version: v, NodeName: "rear", State: dir,
		ADSSocket: ads, Drain: 50 * time.Millisecond,
	}
}

func TestRealEnvoyIsRestarted(t *testing.T) {
	cfg := realConfig(t)
	r := start(t, cfg)
	r.SetNodeID("id-1")
	first := r.await(t, live(0))
	id, err := r.Admin().NodeID(t.Context())
	require.NoError(t, err)
	require.Equal(t, "id-1", id)
	log, err := os.ReadFile(filepath.Join(cfg.State, "envoy.log"))
	require.NoError(t, err)
	require.NotContains(t, string(log), "[error]")
	require.NotContains(t, string(log), "no configured limit")

	require.NoError(t, syscall.Kill(first.PID, syscall.SIGKILL))
	second := r.await(t, live(first.PID))
	require.Equal(t, 1, second.Restarts)

	// A new id means a replacement (CAR-11).
	r.SetNodeID("id-2")
	third := r.await(t, live(second.PID))
	require.Equal(t, "id-2", third.NodeID)
	require.Equal(t, 1, third.Restarts)

	r.stop()
	require.Equal(t, envoy.Stopped, r.State().Phase)
	require.ErrorIs(t, syscall.Kill(third.PID, 0), syscall.ESRCH)
}

func TestRealEnvoyIsAdopted(t *testing.T) {
	cfg := realConfig(t)
	cfg.Keep = true
	r := start(t, cfg)
	r.SetNodeID("id-1")
	first := r.await(t, live(0))
	t.Cleanup(func() { _ = syscall.Kill(first.PID, syscall.SIGKILL) })
	r.stop()
	require.Equal(t, envoy.Left, r.State().Phase)

	r = start(t, cfg)
	r.SetNodeID("id-1")
	s := r.await(t, live(0))
	require.True(t, s.Adopted)
	require.Equal(t, first.PID, s.PID)

	// The end of an adopted Envoy is noticed too.
	require.NoError(t, syscall.Kill(s.PID, syscall.SIGKILL))
	s = r.await(t, live(first.PID))
	require.False(t, s.Adopted)
	t.Cleanup(func() { _ = syscall.Kill(s.PID, syscall.SIGKILL) })
	r.stop()

	// Another id: the one that runs is replaced.
	cfg.Keep = false
	r = start(t, cfg)
	r.SetNodeID("id-2")
	require.False(t, r.await(t, live(s.PID)).Adopted)
	require.ErrorIs(t, syscall.Kill(s.PID, 0), syscall.ESRCH)
}
