// Package run runs a whole vehicle on one machine: simulated hosts, and on them
// control plane, gateways with their proxies, and components.
package run

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/mesh/envoy"
	"carisma.dev/gateway/vehicles"
	"carisma.dev/gateway/vehicles/hosts"
)

// Options say how a vehicle is run.
type Options struct {
	// Namespaces gives each host a network namespace; else they share loopback.
	Namespaces bool
	// Peers chooses the implementation of the components that have one so named.
	Peers string
	// Dir gets node files, logs, sockets and state.
	Dir string
	// Carisma is the path of the carisma program.
	Carisma string
	// Envoy is the path of the proxy.
	Envoy string
}

// Runner is a running vehicle.
type Runner struct {
	vehicle   *vehicles.Vehicle
	options   Options
	world     *hosts.World
	processes []*Process // in the order of their start
}

// New makes the hosts and prepares every program; Start starts them. A program
// that cannot be found is an error.
func New(v *vehicles.Vehicle, o Options) (_ *Runner, err error) {
	r := &Runner{vehicle: v, options: o}
	if r.world, err = r.makeWorld(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.world.Close())
		}
	}()
	for _, h := range v.HPCs() {
		if err := r.addNode(h); err != nil {
			return nil, err
		}
	}
	for i := range v.Components {
		if err := r.addComponent(&v.Components[i]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Runner) makeWorld() (*hosts.World, error) {
	var specs []hosts.Spec
	for _, h := range r.vehicle.Hosts {
		specs = append(specs, hosts.Spec{Name: h.Name, Addresses: h.Addresses})
	}
	if !r.options.Namespaces {
		return hosts.Loopback(specs)
	}
	var networks []hosts.Network
	for _, n := range r.vehicle.Networks {
		networks = append(networks, hosts.Network{Name: n.Name, Subnet: n.Subnet, Multicast: n.SD != nil})
	}
	return hosts.Namespaces(networks, specs)
}

// addNode prepares the programs of an HPC: the control plane, where it is
// central (CAR-1), and the gateway, which starts the proxy.
func (r *Runner) addNode(h *vehicles.Host) error {
	if err := os.MkdirAll(r.State(h.Name), 0o755); err != nil {
		return err
	}
	data, err := r.renderNode(h)
	if err != nil {
		return err
	}
	file := filepath.Join(r.options.Dir, h.Name, "node.yaml")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return err
	}
	if h.Role == config.Central {
		r.add(h.Name+"/control-plane", h.Name, []string{r.options.Carisma, "central", "--config", file}, nil)
	}
	r.add(h.Name+"/gateway", h.Name, []string{r.options.Carisma, "node", "--config", file}, []string{"CARISMA_ENVOY=" + r.options.Envoy})
	return nil
}

func (r *Runner) addComponent(c *vehicles.Component) error {
	command := c.Command
	if peer, ok := c.Peers[r.options.Peers]; ok {
		command = peer
	}
	program, err := r.findProgram(command[0])
	if err != nil {
		return fmt.Errorf("%s: component %s: %w", c.Pos, c.Name, err)
	}
	env := []string{}
	if c.Network != "" {
		n := r.vehicle.Network(c.Network)
		env = append(env,
			"CARISMA_ADDRESS="+r.addr(r.vehicle.Host(c.Host), c.Network).String(),
			"CARISMA_PREFIX_LEN="+strconv.Itoa(n.Subnet.Bits()),
			"CARISMA_NETWORK="+n.Name,
			"CARISMA_SD_GROUP="+n.SD.Group.String(),
			"CARISMA_SD_PORT="+strconv.Itoa(int(n.SD.Port)))
		if r.options.Namespaces {
			env = append(env, "CARISMA_INTERFACE="+hosts.DeviceName(n.Name))
		}
	}
	if c.Listen.IsValid() {
		env = append(env, "CARISMA_LISTEN="+r.Listen(c))
	}
	r.add(c.Name, c.Host, append([]string{program}, command[1:]...), env)
	return nil
}

func (r *Runner) add(name, host string, argv, env []string) {
	r.processes = append(r.processes, &Process{
		Name: name, host: r.world.Host(host), argv: argv, env: env,
		log: filepath.Join(r.options.Dir, host, filepath.Base(name)+".log"),
	})
}

// findProgram looks a program up beside carisma, in build beside that
// directory, then in PATH.
func (r *Runner) findProgram(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	bin := filepath.Dir(r.options.Carisma)
	for _, candidate := range []string{filepath.Join(bin, name), filepath.Join(filepath.Dir(bin), "build", name)} {
		if info, err := os.Stat(candidate); err == nil && !info.IsDir() {
			return candidate, nil
		}
	}
	if strings.Contains(name, "/") {
		return "", fmt.Errorf("no program %s in %s or in %s", name, bin, filepath.Join(filepath.Dir(bin), "build"))
	}
	return exec.LookPath(name)
}

// Start starts everything but the components that are manual.
func (r *Runner) Start() error {
	for _, p := range r.processes {
		if c := r.vehicle.Component(p.Name); c != nil && c.Manual {
			continue
		}
		if err := p.Start(); err != nil {
			return err
		}
	}
	return nil
}

// Close ends all programs, the last started first, and the hosts.
func (r *Runner) Close() error {
	var errs []error
	for _, p := range slices.Backward(r.processes) {
		errs = append(errs, p.Stop())
	}
	for _, h := range r.vehicle.HPCs() {
		// A gateway that was killed leaves its proxy running, for the next one to
		// adopt; there is no next one.
		errs = append(errs, envoy.EndOrphan(r.State(h.Name)))
	}
	return errors.Join(append(errs, r.world.Close())...)
}

// Vehicle returns what is run.
func (r *Runner) Vehicle() *vehicles.Vehicle { return r.vehicle }

// Namespaces reports whether hosts are network namespaces.
func (r *Runner) Namespaces() bool { return r.options.Namespaces }

// Processes returns every program, in the order of their start.
func (r *Runner) Processes() []*Process { return r.processes }

// Process returns a program by name, nil if there is none.
func (r *Runner) Process(name string) *Process {
	for _, p := range r.processes {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Host returns a simulated host by name.
func (r *Runner) Host(name string) *hosts.Host { return r.world.Host(name) }

// Dir returns the directory of a host, with its logs and its state.
func (r *Runner) Dir(host string) string { return filepath.Join(r.options.Dir, host) }

// State returns the state directory of an HPC.
func (r *Runner) State(host string) string { return filepath.Join(r.options.Dir, host, "state") }

// Listen returns where a component that is a gRPC service listens, as its host
// sees it.
func (r *Runner) Listen(c *vehicles.Component) string { return r.mapAddress(c.Listen.String()) }

// EgressSocket returns the Unix socket of an HPC's egress listener.
func (r *Runner) EgressSocket(host string) string {
	return filepath.Join(r.State(host), "egress.sock")
}

// Egress returns the address of an HPC's egress listener, as its host sees it.
func (r *Runner) Egress(host string) netip.AddrPort {
	return netip.AddrPortFrom(r.egressAddr(r.vehicle.Host(host)), egressPort)
}

// egressPort is the port of the egress listener where the node file has none.
const egressPort = 15000

// egressAddr is the loopback address that the host has for itself.
func (r *Runner) egressAddr(h *vehicles.Host) netip.Addr {
	if r.options.Namespaces {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return r.addr(h, r.vehicle.Backbone().Name)
}

// ControlPlane returns the address of the control plane on the backbone.
func (r *Runner) ControlPlane() string { return r.controlPlane().String() }

func (r *Runner) controlPlane() netip.AddrPort {
	return netip.AddrPortFrom(r.addr(r.vehicle.Central(), r.vehicle.Backbone().Name), controlPlanePort)
}

// Addr returns the address of a host on a network.
func (r *Runner) Addr(host, network string) netip.Addr {
	return r.addr(r.vehicle.Host(host), network)
}

func (r *Runner) addr(h *vehicles.Host, network string) netip.Addr {
	return r.mapAddr(h.Addresses[network])
}
