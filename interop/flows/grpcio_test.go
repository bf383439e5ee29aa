package flows_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/peers"
	"carisma.dev/gateway/vehicles/run"
)

// grpcioTimeout bounds the whole of the client.
const grpcioTimeout = 2 * time.Minute

// grpcio, the second implementation of gRPC, at center's proxy, with vsomeip as the
// ECU: calls, errors with details, names by authority and header, reflection,
// deadlines, and watches that go on after their ends.
func TestGrpcio(t *testing.T) {
	python := peers.Need(t, peers.Envoy, peers.Vsomeip, peers.Python)[2]
	needNamespaces(t)
	r := up(t, run.Options{Namespaces: true, Peers: "vsomeip"})
	waitUp(t, r, "center")

	ctx, cancel := context.WithTimeout(t.Context(), grpcioTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "../python/grpcio_client.py", r.Egress("center").String(),
		filepath.Join(cabin, "interfaces"), "../../codegen/protos")
	cmd.Env = append(cmd.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	require.NoError(t, r.Host("center").Start(cmd))
	failed := obey(r, out, in, t.Log)
	if failed != nil {
		cancel()
	}
	err = cmd.Wait()
	require.NoError(t, failed)
	require.NoError(t, err, &errs)
}

// obey does what the client asks for, until it ends.
func obey(r *run.Runner, out io.Reader, in io.WriteCloser, log func(...any)) error {
	defer in.Close()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		order, asked := strings.CutPrefix(lines.Text(), "do ")
		log(lines.Text())
		if !asked {
			continue
		}
		what, name, _ := strings.Cut(order, " ")
		if err := do(r.Process(name), what); err != nil {
			return fmt.Errorf("%s: %w", order, err)
		}
		if _, err := io.WriteString(in, "done\n"); err != nil {
			return err
		}
	}
	return lines.Err()
}

func do(p *run.Process, what string) error {
	switch what {
	case "start":
		return p.Start()
	case "stop":
		return p.Stop()
	case "kill":
		return p.Kill()
	case "freeze":
		return p.Signal(syscall.SIGSTOP)
	case "thaw":
		return p.Signal(syscall.SIGCONT)
	default:
		return fmt.Errorf("nothing known as %q", what)
	}
}
