// Package unixsock has the rules for the Unix sockets of a node: how long their
// paths may be and how a socket is taken over from a process that died.
package unixsock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// MaxPath is the largest length of a socket path in bytes: sun_path less its
// terminator. Envoy refuses to start with a longer one.
const MaxPath = 107

// dialTimeout bounds the probe of a socket that is in the way.
const dialTimeout = time.Second

// PathError says that a socket path is too long for the kernel.
type PathError struct {
	Path string
}

func (e *PathError) Error() string {
	return fmt.Sprintf("socket path %s has %d bytes, at most %d are possible: choose a shorter state directory",
		e.Path, len(e.Path), MaxPath)
}

// InUseError says that a live process listens on the path.
type InUseError struct {
	Path string
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("socket %s is in use by another process", e.Path)
}

// Check returns a *PathError if the path cannot be bound, with every symbolic
// link and relative part as it stands.
func Check(path string) error {
	if len(path) > MaxPath {
		return &PathError{Path: path}
	}
	return nil
}

// Listen binds path with the given permissions. A socket file that a dead
// process left is replaced; one that is answered is an *InUseError. Closing the
// listener removes the file.
func Listen(ctx context.Context, path string, mode fs.FileMode) (net.Listener, error) {
	if err := Check(path); err != nil {
		return nil, err
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is in the way: it is no socket", path)
	}
	d := net.Dialer{Timeout: dialTimeout}
	if conn, err := d.DialContext(ctx, "unix", path); err == nil {
		conn.Close()
		return &InUseError{Path: path}
	}
	return os.Remove(path)
}
