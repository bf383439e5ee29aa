package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Load reads a node.yaml. Its errors are *Error, joined; one that wraps the
// cause says that the file cannot be read. Paths in the result are absolute or
// relative to the working directory, no longer to the file.
func Load(path string) (*Node, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err // the path is said already
		}
		return nil, &Error{File: path, Message: err.Error(), Err: err}
	}
	n := new(Node)
	if err := Decode(path, data, n); err != nil {
		return nil, err
	}
	n.Resolve(filepath.Dir(path))
	return n, nil
}

// Resolve makes the paths of the node relative to a directory, and gives those
// left out the value that follows from others.
func (n *Node) Resolve(dir string) {
	at := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(dir, p)
	}
	n.State = at(n.State)
	if n.Egress.Socket == "" {
		n.Egress.Socket = filepath.Join(n.State, "egress.sock")
	} else {
		n.Egress.Socket = at(n.Egress.Socket)
	}
	for i, p := range n.Interfaces {
		n.Interfaces[i] = at(p)
	}
	if strings.Contains(n.Envoy.Path, "/") {
		n.Envoy.Path = at(n.Envoy.Path)
	}
}
