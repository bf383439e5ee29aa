package envoy

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEndOrphan(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, EndOrphan(state), "none was left")

	orphan := exec.Command("sleep", "600")
	require.NoError(t, orphan.Start())
	start, err := startTime(orphan.Process.Pid)
	require.NoError(t, err)
	r := record{PID: orphan.Process.Pid, Start: start}
	path := filepath.Join(state, pidFile)
	require.NoError(t, r.write(path))
	ended := make(chan error, 1)
	go func() { ended <- orphan.Wait() }()
	require.NoError(t, EndOrphan(state))
	require.ErrorContains(t, <-ended, "killed")
	require.NoFileExists(t, path)

	// A number that was given to another process is left alone.
	other := exec.Command("sleep", "600")
	require.NoError(t, other.Start())
	r = record{PID: other.Process.Pid, Start: "1"}
	require.NoError(t, r.write(path))
	require.NoError(t, EndOrphan(state))
	require.NoFileExists(t, path)
	require.NoError(t, other.Process.Kill())
	_ = other.Wait() // killed just now

	require.NoError(t, writeFile(path, []byte("{")))
	require.Error(t, EndOrphan(state))
}
