package matrix_test

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/vehicles/hosts"
)

// patience is how long a program may take for anything.
const patience = 20 * time.Second

// program is a running program of the matrix.
type program struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{}

	mu    sync.Mutex // guards what follows
	lines []string   // said and not yet taken
	more  chan struct{}
	log   bytes.Buffer
}

// start starts a program on a host and waits until it runs.
func start(t *testing.T, host *hosts.Host, name string, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, name: name, cmd: cmd, ended: make(chan struct{}), more: make(chan struct{})}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	p.in, cmd.Stderr = in, (*programLog)(p)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // some have programs of their own
	require.NoError(t, host.Start(cmd))
	go p.read(out)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said at last:\n%s\nand on the standard error:\n%s", name, strings.Join(p.lines, "\n"), &p.log)
		}
	})
	p.until("ready")
	return p
}

func (p *program) read(out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
}

// programLog keeps what a program says on its standard error.
type programLog program

func (l *programLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(b)
}

// say gives the program a command.
func (p *program) say(words ...string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, strings.Join(words, " ")+"\n")
	require.NoError(p.t, err, p.name)
}

// take removes the first line that begins with a prefix and returns it. Lines that
// came before it stay.
func (p *program) take(prefix string) (line string, found bool, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.lines, func(l string) bool { return strings.HasPrefix(l, prefix) })
	if i < 0 {
		return "", false, p.more
	}
	line = p.lines[i]
	p.lines = slices.Delete(p.lines, i, i+1)
	return line, true, p.more
}

// await waits for a line.
func (p *program) await(prefix string, limit time.Duration) (string, bool) {
	timeout := time.After(limit)
	for {
		line, found, more := p.take(prefix)
		if found {
			return line, true
		}
		select {
		case <-more:
		case <-timeout:
			return "", false
		case <-p.ended:
			line, found, _ = p.take(prefix)
			return line, found
		}
	}
}

// until waits for a line that must come.
func (p *program) until(prefix string) string {
	p.t.Helper()
	line, ok := p.await(prefix, patience)
	require.True(p.t, ok, "%s did not say %.80q", p.name, prefix)
	return line
}

// drop forgets the lines that begin with a prefix.
func (p *program) drop(prefix string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = slices.DeleteFunc(p.lines, func(l string) bool { return strings.HasPrefix(l, prefix) })
}

// stop ends the program in good order.
func (p *program) stop() {
	p.t.Helper()
	require.NoError(p.t, p.in.Close())
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end", p.name)
	}
	require.NoError(p.t, p.cmd.Wait(), p.name)
}

// kill ends the program without warning.
func (p *program) kill() {
	if p.cmd.ProcessState == nil {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended just now
		<-p.ended
		_ = p.cmd.Wait()
	}
}
