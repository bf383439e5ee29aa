// Package cores chooses the cores that a measurement runs on.
package cores

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pin puts all threads of this process on the given cores, until the function that it
// returns is called. Threads and processes that are started meanwhile inherit it.
func Pin(cores ...int) (release func() error, err error) {
	var before, chosen unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("affinity: %w", err)
	}
	for _, c := range cores {
		if !before.IsSet(c) {
			return nil, fmt.Errorf("there is no core %d for this process", c)
		}
		chosen.Set(c)
	}
	if err := place(&chosen); err != nil {
		return nil, fmt.Errorf("pin to cores %d: %w", cores, err)
	}
	procs := runtime.GOMAXPROCS(len(cores))
	return func() error {
		runtime.GOMAXPROCS(procs)
		return place(&before)
	}, nil
}

// First returns the first n cores that this process may use.
func First(n int) ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("affinity: %w", err)
	}
	var cores []int
	for c := 0; len(cores) < n && c < 64*len(set); c++ {
		if set.IsSet(c) {
			cores = append(cores, c)
		}
	}
	if len(cores) < n {
		return nil, fmt.Errorf("%d cores are needed, there are %d", n, len(cores))
	}
	return cores, nil
}

// place sets the affinity of every thread; twice, for those that one of them
// started meanwhile.
func place(set *unix.CPUSet) error {
	for range 2 {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range tasks {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(id, set); err != nil && err != unix.ESRCH {
				return err
			}
		}
	}
	return nil
}
