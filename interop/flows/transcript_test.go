package flows_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/peers"
)

// The scenario holds and prints the same transcript whoever plays the ECU: our
// stack on loopback addresses, our stack or vsomeip in network namespaces.
func TestTranscript(t *testing.T) {
	paths := peers.Need(t, peers.Envoy, peers.Vsomeip)
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"loopback", nil},
		{"vsomeip in namespaces", []string{"--netns", "--peers", "vsomeip"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.flags != nil {
				needNamespaces(t)
			}
			argv := append([]string{program(t, "carisma"), "up", cabin, "--check", "--envoy", paths[0], "--state", shortTempDir(t)}, c.flags...)
			out, errs, err := runCommand(t, 3*time.Minute, argv...)
			require.NoError(t, err, "%s\n%s", out, errs)
			checkTranscript(t, golden, out)
		})
	}
}

// checkTranscript compares what was played with a file.
func checkTranscript(t *testing.T, file, transcript string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(transcript), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), transcript)
}

// nobody is a user without any privilege.
const nobody = 65534

// A user without privileges runs the vehicle, on loopback addresses and in the
// namespaces of a user namespace.
func TestUnprivileged(t *testing.T) {
	envoy := peers.Need(t, peers.Envoy)[0]
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	// The user may not be able to enter the directories that hold the programs.
	dir := shortTempDir(t)
	require.NoError(t, os.Chmod(dir, 0o755))
	for _, name := range []string{"carisma", "cabin-climate", "cabin-cluster", "cabin-trip"} {
		copyFile(t, program(t, name), filepath.Join(dir, name))
	}
	copyFile(t, envoy, filepath.Join(dir, "envoy"))
	require.NoError(t, os.CopyFS(filepath.Join(dir, "cabin"), os.DirFS(cabin)))
	state := filepath.Join(dir, "state")
	require.NoError(t, os.Mkdir(state, 0o755))
	require.NoError(t, os.Chown(state, nobody, nobody))

	for _, c := range []struct {
		name  string
		flags []string
	}{{"loopback", nil}, {"namespaces", []string{"--netns"}}} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			argv := append([]string{"up", filepath.Join(dir, "cabin"), "--check", "--state", filepath.Join(state, c.name)}, c.flags...)
			cmd := exec.CommandContext(ctx, filepath.Join(dir, "carisma"), argv...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + state, "CARISMA_ENVOY=" + filepath.Join(dir, "envoy")}
			cmd.Dir = dir
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if strings.Contains(errs.String(), "user namespaces") {
				t.Skip("this machine gives its users no user namespaces:", errs.String())
			}
			require.NoError(t, err, "%s\n%s", out, errs.String())
			checkTranscript(t, golden, string(out))
		})
	}
}

// copyFile links a program, or copies it where a link cannot be.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if os.Link(from, to) == nil {
		return
	}
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(to, data, 0o755))
}
