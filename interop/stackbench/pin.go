package stackbench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// pin puts all threads of this process on one core, until the function that it
// returns is called. Threads and processes that are started meanwhile inherit it.
func pin(core int) (release func() error, err error) {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("affinity: %w", err)
	}
	one.Set(core)
	if err := place(&one); err != nil {
		return nil, fmt.Errorf("pin to core %d: %w", core, err)
	}
	before := runtime.GOMAXPROCS(1)
	return func() error {
		runtime.GOMAXPROCS(before)
		return place(&all)
	}, nil
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
