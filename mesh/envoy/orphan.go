package envoy

import (
	"errors"
	"os"
	"path/filepath"
)

// EndOrphan kills the Envoy that a gateway with the given state directory left
// behind when it was killed, and waits for its end. Without one it does nothing.
func EndOrphan(state string) error {
	path := filepath.Join(state, pidFile)
	r, err := readRecord(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if p, err := attach(r.PID, r.Start); err == nil { // else it has ended already
		kill(p)
	}
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
