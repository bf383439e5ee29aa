package stackbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"carisma.dev/gateway/interop/wait"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/vehicles/hosts"
)

// Ports of the floor in C, beside those of the floor in Go.
const (
	cEchoPort  = 30902
	cFloorPort = 30903
	beatPort   = 30904 // of the Go program that an idle process is compared with
)

// floorStart is how long the receiver in C has to bind its socket.
const floorStart = 100 * time.Millisecond

// buildFloor compiles the floor in C with the compiler of the machine.
func (w *world) buildFloor(ctx context.Context) error {
	w.floor = filepath.Join(w.o.Dir, "floor")
	source := filepath.Join(w.o.Root, "interop", "stackbench", "floor", "floor.c")
	out, err := exec.CommandContext(ctx, "cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", w.floor, source).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the floor in C: %w\n%s", err, out)
	}
	return nil
}

// cEcho is the bare echo in C.
func (w *world) cEcho() server {
	return server{program: w.floor, args: []string{"echo", serverAddr.String(), strconv.Itoa(cEchoPort)}}
}

// cResult is what the floor prints.
type cResult struct {
	Value float64 `json:"value"`
	Lost  int     `json:"lost"`
}

// floorIn starts the floor on a host.
func (w *world) floorIn(ctx context.Context, host *hosts.Host, at netip.AddrPort, mode string, numbers ...int) (*floorRun, error) {
	args := []string{mode, at.Addr().String(), strconv.Itoa(int(at.Port()))}
	for _, n := range numbers {
		args = append(args, strconv.Itoa(n))
	}
	f := &floorRun{cmd: w.command(ctx, at.Addr(), w.floor, args...)}
	f.cmd.Stdout = &f.out
	return f, host.Start(f.cmd)
}

type floorRun struct {
	cmd *exec.Cmd
	out bytes.Buffer
}

func (f *floorRun) result() (r cResult, err error) {
	if err := f.cmd.Wait(); err != nil {
		return r, fmt.Errorf("the floor in C: %w", err)
	}
	return r, json.Unmarshal(f.out.Bytes(), &r)
}

func (w *world) cCalls(ctx context.Context, mode string, numbers ...int) (float64, error) {
	f, err := w.floorIn(ctx, w.client, netip.AddrPortFrom(serverAddr, cEchoPort), mode, numbers...)
	if err != nil {
		return 0, err
	}
	r, err := f.result()
	return r.Value, err
}

// cSerial and cTogether are bareSerial and bareTogether in C.
func (w *world) cSerial(ctx context.Context) (float64, error) {
	return w.cCalls(ctx, "serial", w.o.Calls)
}

func (w *world) cTogether(ctx context.Context) (float64, error) {
	return w.cCalls(ctx, "flight", 10*w.o.Calls, inFlight)
}

// cEvents is bareEvents in C.
func (w *world) cEvents(ctx context.Context, size int) (a Arrivals, err error) {
	at := netip.AddrPortFrom(clientAddr, cFloorPort)
	f, err := w.floorIn(ctx, w.client, at, "receive", burstCount)
	if err != nil {
		return a, err
	}
	p, err := w.serve(ctx, w.floor, "send", at.Addr().String(), strconv.Itoa(cFloorPort),
		strconv.Itoa(size+someip.HeaderSize), strconv.Itoa(burstCount))
	if err == nil {
		defer p.end()
		if err = wait.For(ctx, floorStart); err == nil {
			_, err = p.in.Write([]byte("\n"))
		}
	}
	r, rerr := f.result()
	return Arrivals{Rate: r.Value, Lost: r.Lost}, errors.Join(err, rerr)
}
