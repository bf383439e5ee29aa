package unixsock_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/unixsock"
)

func TestListen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "s.sock")

	l, err := unixsock.Listen(t.Context(), path, 0o600)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

	_, err = unixsock.Listen(t.Context(), path, 0o600)
	var inUse *unixsock.InUseError
	require.ErrorAs(t, err, &inUse)

	// A process that dies leaves its file.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.FileExists(t, path)
	l, err = unixsock.Listen(t.Context(), path, 0o600)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoFileExists(t, path)
}

func TestListenRefusesWhatIsNoSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("keep"), 0o600))
	_, err := unixsock.Listen(t.Context(), path, 0o600)
	require.ErrorContains(t, err, "no socket")
	require.FileExists(t, path)
}

func TestPathLength(t *testing.T) {
	t.Parallel()
	require.NoError(t, unixsock.Check(strings.Repeat("x", 107)))
	_, err := unixsock.Listen(t.Context(), strings.Repeat("x", 108), 0o600)
	var tooLong *unixsock.PathError
	require.ErrorAs(t, err, &tooLong)
	require.ErrorContains(t, err, "108 bytes")
}
