package stackbench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/hosts"
)

const network = "lan"

var (
	subnet     = netip.MustParsePrefix("10.79.0.0/24")
	group      = netip.MustParseAddr("224.244.79.1")
	serverAddr = netip.MustParseAddr("10.79.0.1")
	clientAddr = netip.MustParseAddr("10.79.0.2")
	// Two stacks do not share an address.
	vsomeipAddr = netip.MustParseAddr("10.79.0.3")
)

// sdPort is that of service discovery.
const sdPort = 30490

// world is a client host and two server hosts: of ours and of vsomeip.
type world struct {
	*hosts.World

	o              Options
	server, client *hosts.Host
	log            *os.File // of the programs
	floor          string   // the program in C
}

func newWorld(o Options) (_ *world, err error) {
	log, err := os.Create(filepath.Join(o.Dir, "programs.log"))
	if err != nil {
		return nil, err
	}
	w, err := hosts.Namespaces([]hosts.Network{{Name: network, Subnet: subnet, Multicast: true}}, []hosts.Spec{
		{Name: "server", Addresses: map[string]netip.Addr{network: serverAddr}},
		{Name: "vsomeip", Addresses: map[string]netip.Addr{network: vsomeipAddr}},
		{Name: "client", Addresses: map[string]netip.Addr{network: clientAddr}},
	})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &world{World: w, o: o, server: w.Host("server"), client: w.Host("client"), log: log}, nil
}

func (w *world) close() error { return errors.Join(w.Close(), w.log.Close()) }

// command prepares a program with the variables of a vehicle.
func (w *world) command(ctx context.Context, at netip.Addr, program string, args ...string) *exec.Cmd {
	if filepath.Base(program) == program {
		program = filepath.Join(w.o.Root, "bin", program)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(),
		"CARISMA_NETWORK="+network, "CARISMA_INTERFACE="+network, "CARISMA_ADDRESS="+at.String(),
		"CARISMA_PREFIX_LEN="+strconv.Itoa(subnet.Bits()), "CARISMA_SD_GROUP="+group.String(),
		"CARISMA_SD_PORT="+strconv.Itoa(sdPort))
	if w.o.Profiles != "" {
		cmd.Env = append(cmd.Env, profileVariable+"="+w.o.Profiles)
	}
	cmd.Stderr = w.log
	return cmd
}

// process is a program that runs.
type process struct {
	*exec.Cmd

	in     io.WriteCloser
	gently bool // it has a profile to write
}

// serve starts a program on the server of our stack.
func (w *world) serve(ctx context.Context, program string, args ...string) (*process, error) {
	return w.start(w.server, w.command(ctx, serverAddr, program, args...))
}

func (w *world) start(host *hosts.Host, cmd *exec.Cmd) (*process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := host.Start(cmd); err != nil {
		return nil, fmt.Errorf("%s: %w", cmd.Path, err)
	}
	return &process{cmd, in, w.o.Profiles != ""}, nil
}

// end kills the program, as a power cut would.
func (p *process) end() {
	if p.gently {
		_ = p.Process.Signal(syscall.SIGTERM)
	} else {
		_ = p.Process.Kill()
	}
	_ = p.Wait() // it was killed
}

// vsomeip names the service on vsomeip.
func (w *world) vsomeip(program string) string { return filepath.Join(w.o.Vsomeip, program) }

// runClient runs the client on vsomeip and decodes what it prints.
func (w *world) runClient(ctx context.Context, result any, args ...string) error {
	cmd := w.command(ctx, clientAddr, w.vsomeip("bench_client"), append([]string{"--instance", "2"}, args...)...)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := w.client.Start(cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("client on vsomeip: %w", err)
	}
	return json.Unmarshal(out.Bytes(), result)
}

// stack starts our stack on the client, with the instance Shared deployed.
func (w *world) stack() (stack *runtime.Stack, n *runtime.Network, err error) {
	err = w.client.Do(func() (err error) {
		c := runtime.NetworkConfig{
			Name: network, Address: netip.PrefixFrom(clientAddr, subnet.Bits()), Interface: network,
			SD:        runtime.SDConfig{Group: group, Port: sdPort},
			ClientIDs: runtime.Range{First: 0x1600, Last: 0x16ff},
		}
		Timing(&c.SD)
		stack, err = runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{c}})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	n = stack.Network(network)
	if err := n.Deploy(SharedDatagrams()); err != nil {
		return nil, nil, errors.Join(err, stack.Close())
	}
	return stack, n, nil
}

// fastServer starts our stack on the server, with no delay in its service discovery.
func (w *world) fastServer() (stack *runtime.Stack, err error) {
	err = w.server.Do(func() (err error) {
		stack, err = runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{{
			Name: network, Address: netip.PrefixFrom(serverAddr, subnet.Bits()), Interface: network,
			SD:        runtime.SDConfig{Group: group, Port: sdPort, InitialDelayMax: -1, RequestResponseMax: -1},
			ClientIDs: runtime.Range{First: 0x1700, Last: 0x17ff},
		}}})
		return err
	})
	return stack, err
}

// use starts our stack and a client of an instance that is there.
func (w *world) use(ctx context.Context, instance uint16) (*runtime.Client, *runtime.Network, func() error, error) {
	stack, n, err := w.stack()
	if err != nil {
		return nil, nil, nil, err
	}
	c, err := n.Client(key(instance))
	if err == nil {
		err = c.Await(ctx)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, stack.Close())
	}
	return c, n, stack.Close, nil
}
