package grpcadapter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
)

// maxSocketPath is the longest path of a Unix socket, without the final zero.
const maxSocketPath = 107

// ListenUnix listens on a Unix socket that only the user of the gateway, and so
// its proxy, may connect to. A socket that an earlier process left is replaced.
func ListenUnix(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("grpcadapter: socket path %q has %d bytes, at most %d are possible", path, len(path), maxSocketPath)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("grpcadapter: stale socket: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("grpcadapter: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("grpcadapter: %w", err), l.Close())
	}
	return l, nil
}
