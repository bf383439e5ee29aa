package envoy

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is a running Envoy: our child, or one that an earlier run of the
// gateway left and that is adopted. done is closed when it has ended.
type process struct {
	pid    int
	handle *os.Process
	done   chan struct{}
	end    string // how it ended; valid once done is closed
}

// spawn starts the command in a process group of its own, so that a signal to
// the gateway's group does not reach it.
func spawn(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{pid: cmd.Process.Pid, handle: cmd.Process, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		err := cmd.Wait()
		var exit *exec.ExitError
		switch {
		case err == nil:
			p.end = "exit status 0"
		case errors.As(err, &exit):
			p.end = exit.ProcessState.String()
		default:
			p.end = err.Error()
		}
	}()
	return p, nil
}

// attach watches a process that is not our child. start is its start time in the
// form of startTime: without it a number that was given to another process would
// be taken for ours.
func attach(pid int, start string) (*process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	handle, err := os.FindProcess(pid)
	if err == nil {
		var now string
		now, err = startTime(pid)
		if err == nil && now != start {
			err = errors.New("its number was given to another process")
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("process %d: %w", pid, err), file.Close())
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p := &process{pid: pid, handle: handle, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer file.Close()
		defer func() { _ = handle.Release() }()
		p.end = "ended"
		// A pidfd becomes readable when its process ends.
		if err := raw.Read(func(fd uintptr) bool { return pidfdReadable(int(fd)) }); err != nil {
			p.end = err.Error()
		}
	}()
	return p, nil
}

func pidfdReadable(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) signal(s os.Signal) {
	// The only failure is that it has ended, which done tells.
	_ = p.handle.Signal(s)
}

// startTime returns when a process started, in clock ticks since the boot.
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", err
	}
	// The name, in parentheses, may hold anything; the fields after it do not.
	end := strings.LastIndexByte(string(stat), ')')
	fields := strings.Fields(string(stat[end+1:]))
	const startField = 22 - 3 // proc(5) counts from 1 and field 3 is the first one here
	if end < 0 || len(fields) <= startField {
		return "", fmt.Errorf("/proc/%d/stat is not understood", pid)
	}
	if fields[0] == "Z" {
		return "", errors.New("it has ended")
	}
	return fields[startField], nil
}
