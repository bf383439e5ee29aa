package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/envoy"
	"carisma.dev/gateway/mesh/gateway"
)

// What the test program is when it is started by itself.
const (
	asGateway = "CARISMA_TEST_GATEWAY" // the gateway of the node file that is named
	asUndoer  = "CARISMA_TEST_UNDOER"
)

// guard takes the state directories of gateways whose Envoys have to end with the
// tests.
var guard *os.File

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asGateway) != "":
		os.Exit(runGateway(os.Getenv(asGateway)))
	case os.Getenv(asUndoer) != "":
		endEnvoys()
		os.Exit(0)
	}
	var err error
	if guard, err = startUndoer(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// startUndoer starts a process that outlives the tests for a moment: an Envoy
// outlives its gateway on purpose, so one is left by tests that are killed or run
// out of time, which clean up nothing.
func startUndoer() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asUndoer+"=1")
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what ends the tests spares it
	return w, cmd.Start()
}

// endEnvoys waits for the end of the tests.
func endEnvoys() {
	var states []string
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		states = append(states, lines.Text())
	}
	for _, state := range states {
		_ = envoy.EndOrphan(state) // nobody hears of it
	}
}

// runGateway is a gateway in a process of its own, which can be killed.
func runGateway(file string) int {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	node, err := config.Load(file)
	if err == nil {
		err = gateway.Run(ctx, node, gateway.Options{Logger: newLogger().With("on", node.Name), Ready: func() { fmt.Println("ready") }})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
