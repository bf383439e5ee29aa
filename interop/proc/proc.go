// Package proc reads what Linux tells of a process.
package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Memory returns what a process has in memory, and how much of it is anonymous, in
// KiB.
func Memory(pid int) (rss, anonymous int, err error) {
	path := filepath.Join(directory(pid), "status")
	if rss, err = field(path, "VmRSS:"); err != nil {
		return 0, 0, err
	}
	anonymous, err = field(path, "RssAnon:")
	return rss, anonymous, err
}

// CPU returns the processor time of a process so far, as the scheduler keeps it, in
// nanoseconds. That of threads which ended is missing; an idle process ends none.
func CPU(pid int) (time.Duration, error) {
	sum, err := threads(pid, func(dir string) (int, error) {
		text, err := os.ReadFile(filepath.Join(dir, "schedstat"))
		if err != nil {
			return 0, err
		}
		ran, _, _ := strings.Cut(string(text), " ")
		return strconv.Atoi(ran)
	})
	return time.Duration(sum), err
}

// Switches returns how often threads of a process gave their core away so far.
// Threads that ended are missing, as of CPU.
func Switches(pid int) (int, error) {
	return threads(pid, func(dir string) (int, error) {
		return field(filepath.Join(dir, "status"), "voluntary_ctxt_switches:")
	})
}

func directory(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid)) }

// threads adds up a number that each thread of a process has.
func threads(pid int, number func(dir string) (int, error)) (sum int, err error) {
	tasks := filepath.Join(directory(pid), "task")
	all, err := os.ReadDir(tasks)
	if err != nil {
		return 0, err
	}
	for _, t := range all {
		n, err := number(filepath.Join(tasks, t.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return 0, fmt.Errorf("thread %s of process %d: %w", t.Name(), pid, err)
		}
		sum += n
	}
	return sum, nil
}

// field returns a number of a file of lines that begin with a name.
func field(path, name string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			return strconv.Atoi(f[1])
		}
	}
	return 0, fmt.Errorf("%s: no %s", path, name)
}
