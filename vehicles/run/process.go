package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"carisma.dev/gateway/vehicles/hosts"
)

// stopTimeout is how long a process may take to end by itself.
const stopTimeout = 5 * time.Second

// Process is a program of the vehicle: a control plane, a gateway or a
// component. Its methods may be called concurrently.
type Process struct {
	Name string // of a component its name; else host/control-plane or host/gateway
	host *hosts.Host
	argv []string
	env  []string
	log  string // path; output is appended

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd ended
	err  error         // of cmd, valid once done is closed
}

// Start starts the program, which must not be running.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return fmt.Errorf("%s is running already", p.Name)
	}
	if err := os.MkdirAll(filepath.Dir(p.log), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own copy
	cmd := p.command()
	cmd.Stdout, cmd.Stderr = log, log
	if err := p.host.Start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	done := make(chan struct{})
	p.cmd, p.done, p.err = cmd, done, nil
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(done)
	}()
	return nil
}

// Run runs the program to its end with its output going to out. Its standard
// error goes to the log and, the last part of it, into the error.
func (p *Process) Run(out io.Writer) error {
	cmd := p.command()
	var tail tailBuffer
	cmd.Stdout, cmd.Stderr = out, &tail
	if err := p.host.Start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", p.Name, err, tail.String())
	}
	return nil
}

func (p *Process) command() *exec.Cmd {
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	// A group of its own: an interrupt at the terminal is for the runner, which
	// stops the programs in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func (p *Process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Running reports whether the program runs.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

// PID returns the process id of the running program.
func (p *Process) PID() (int, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return 0, false
	}
	return p.cmd.Process.Pid, true
}

// Stop asks the program to end and waits; one that does not is killed, which is
// an error. A program that does not run is stopped already.
func (p *Process) Stop() error {
	done, err := p.signal(syscall.SIGTERM)
	if done == nil {
		return err
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
	}
	return errors.Join(fmt.Errorf("%s did not end within %v and was killed", p.Name, stopTimeout), p.Kill())
}

// Kill ends the program at once and waits for that.
func (p *Process) Kill() error {
	done, err := p.signal(syscall.SIGKILL)
	if done != nil {
		<-done
	}
	return err
}

// Reboot kills the program and starts it again at once.
func (p *Process) Reboot() error {
	if err := p.Kill(); err != nil {
		return err
	}
	return p.Start()
}

// Signal sends a signal, such as SIGSTOP, to the running program.
func (p *Process) Signal(s syscall.Signal) error {
	done, err := p.signal(s)
	if done == nil && err == nil {
		return fmt.Errorf("%s does not run", p.Name)
	}
	return err
}

// signal returns nil for done if the program does not run.
func (p *Process) signal(s syscall.Signal) (done chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return nil, nil
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return nil, fmt.Errorf("signal %s: %w", p.Name, err)
	}
	return p.done, nil
}

// Done is closed when the running program ends.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// tailBuffer keeps the last bytes written.
type tailBuffer struct{ b []byte }

const tailSize = 4 << 10

func (t *tailBuffer) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if extra := len(t.b) - tailSize; extra > 0 {
		t.b = t.b[extra:]
	}
	return len(b), nil
}

func (t *tailBuffer) String() string { return string(t.b) }
