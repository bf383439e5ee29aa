package stackbench

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
)

// profileVariable names the directory that our programs leave their CPU profiles in.
const profileVariable = "CARISMA_CPU_PROFILES"

// Profile starts a CPU profile of this process in the directory that its environment
// names, if any. It is whole once stop was called.
func Profile() (stop func() error, err error) { return profileInto(os.Getenv(profileVariable)) }

func profileInto(dir string) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	name := filepath.Base(os.Args[0]) + "-" + strconv.Itoa(os.Getpid()) + ".pprof"
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// profile starts the profiles of a run: of this process, which is the client, and of
// the programs that it starts.
func (w *world) profile() (stop func() error, err error) { return profileInto(w.o.Profiles) }
