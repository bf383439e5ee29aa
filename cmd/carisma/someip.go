package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carisma.dev/gateway/bridge/jsoncodec"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/proto"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

func newSomeip() *cobra.Command {
	cmd := &cobra.Command{
		Use: "someip", Short: "Speak SOME/IP by hand",
		Long: `The commands below join a SOME/IP network with an address of their own, which no
other program on it may have. With --hex they need no interface: a service is
SERVICE.INSTANCE, such as 6001.0001, and payloads are hexadecimal.`,
	}
	cmd.AddCommand(newSomeipFind(), newSomeipCall(), newSomeipGet(), newSomeipSet(), newSomeipWatch(), newSomeipOffer(), newSomeipNotify())
	return cmd
}

// networkFlags say which network is joined.
type networkFlags struct {
	address  string
	group    string
	port     uint16
	device   string
	clientID uint16
	ports    string
	timeout  time.Duration
	verbose  bool
}

func (f *networkFlags) flags(cmd *cobra.Command) {
	address := os.Getenv("CARISMA_ADDRESS")
	if bits := os.Getenv("CARISMA_PREFIX_LEN"); address != "" && bits != "" {
		address += "/" + bits
	}
	group := os.Getenv("CARISMA_SD_GROUP")
	if group == "" {
		group = runtime.DefaultSDGroup().String()
	}
	port := runtime.DefaultSDPort
	if p, err := strconv.ParseUint(os.Getenv("CARISMA_SD_PORT"), 10, 16); err == nil {
		port = uint16(p)
	}
	fs := cmd.Flags()
	fs.StringVar(&f.address, "address", address, "own `address` on the network with the length of its prefix, such as 10.77.1.9/24")
	fs.StringVar(&f.group, "group", group, "multicast group of service discovery")
	fs.Uint16Var(&f.port, "port", port, "port of service discovery")
	fs.StringVar(&f.device, "device", os.Getenv("CARISMA_INTERFACE"), "network device (default the one with the address)")
	fs.Uint16Var(&f.clientID, "client-id", 0x1500, "SOME/IP client id")
	fs.StringVar(&f.ports, "ports", "30900-30909", "`ports` that a service is offered at")
	fs.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long to wait for the instance, and for an answer")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "log what the stack does")
}

// join joins the network, until the returned stack is closed.
func (f *networkFlags) join() (*runtime.Stack, *runtime.Network, error) {
	prefix, err := netip.ParsePrefix(f.address)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("--address %q: an address with the length of its prefix is needed, such as 10.77.1.9/24", f.address)}
	}
	group, err := netip.ParseAddr(f.group)
	if err != nil {
		return nil, nil, usageError{fmt.Errorf("--group: %w", err)}
	}
	var ports runtime.Range
	if _, err := fmt.Sscanf(f.ports, "%d-%d", &ports.First, &ports.Last); err != nil {
		return nil, nil, usageError{fmt.Errorf("--ports %q: a range is needed, such as 30900-30909", f.ports)}
	}
	level := slog.LevelError
	if f.verbose {
		level = slog.LevelDebug
	}
	const name = "network"
	stack, err := runtime.Start(runtime.Config{
		Networks: []runtime.NetworkConfig{{
			Name: name, Address: prefix, Interface: f.device,
			SD:        runtime.SDConfig{Group: group, Port: f.port},
			ClientIDs: runtime.Range{First: f.clientID, Last: f.clientID}, Ports: ports,
		}},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	})
	if err != nil {
		return nil, nil, err
	}
	return stack, stack.Network(name), nil
}

// someipFlags say which instance is meant, beside the network.
type someipFlags struct {
	networkFlags
	interfaces []string
	instance   string
}

func (f *someipFlags) flags(cmd *cobra.Command) {
	f.networkFlags.flags(cmd)
	fs := cmd.Flags()
	fs.StringSliceVarP(&f.interfaces, "interfaces", "i", nil, "interface files (.proto) or directories with them")
	fs.StringVar(&f.instance, "instance", "", "instance name or id, such as left or 0x0001 (default the only one of the interface)")
}

// typed is an interface with what translates its messages, and an instance of it.
type typed struct {
	iface    *model.Interface
	codec    *jsoncodec.Codec
	instance uint16
}

// load finds the interface with the given full name.
func (f *someipFlags) load(interfaceName string) (t typed, err error) {
	if len(f.interfaces) == 0 {
		return t, usageError{errors.New("which interfaces? give their files or directories with -i, or use --hex")}
	}
	set, err := proto.Load(f.interfaces...)
	if err != nil {
		return t, err
	}
	t.iface = set.Interface(interfaceName)
	switch {
	case t.iface == nil:
		return t, usageError{fmt.Errorf("there is no interface %s; there are: %s", interfaceName, interfaceNames(set))}
	case t.iface.SOMEIP == nil:
		return t, fmt.Errorf("%s: %s has no SOME/IP deployment", t.iface.Pos, interfaceName)
	}
	if t.instance, err = f.instanceID(t.iface); err != nil {
		return t, err
	}
	t.codec, err = jsoncodec.New(set.Descriptors(interfaceName))
	return t, err
}

func interfaceNames(set *proto.Set) string {
	var names []string
	for _, i := range set.Interfaces {
		names = append(names, i.FullName())
	}
	return strings.Join(names, ", ")
}

func (f *someipFlags) instanceID(iface *model.Interface) (uint16, error) {
	known := iface.SOMEIP.Instances
	if f.instance == "" && len(known) == 1 {
		return known[0].ID, nil
	}
	if id, ok := iface.SOMEIP.InstanceID(f.instance); ok {
		return id, nil
	}
	if id, err := strconv.ParseUint(f.instance, 0, 16); err == nil && id != 0 && id < uint64(someip.AnyInstance) {
		return uint16(id), nil
	}
	var names []string
	for _, in := range known {
		names = append(names, fmt.Sprintf("%s (0x%04x)", in.Name, in.ID))
	}
	return 0, usageError{fmt.Errorf("--instance %q: name one of %s, or an id", f.instance, strings.Join(names, ", "))}
}

func (t typed) key() someip.InstanceKey {
	return someip.InstanceKey{Service: t.iface.SOMEIP.ServiceID, Instance: t.instance, Major: uint8(t.iface.Version.Major)}
}

// session is a client of an instance that is there.
type session struct {
	*runtime.Client
	endpoints runtime.Endpoints
	stack     *runtime.Stack
}

// open joins the network and waits for an instance.
func (f *networkFlags) open(ctx context.Context, which someip.InstanceKey) (s *session, err error) {
	stack, network, err := f.join()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stack.Close())
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	found, err := network.Await(ctx, which)
	if err != nil {
		return nil, err
	}
	client, err := network.Client(found.Key)
	if err != nil {
		return nil, err
	}
	return &session{client, found.Endpoints, stack}, nil
}

// leave leaves the network.
func (s *session) leave() error {
	return errors.Join(s.Close(), s.stack.Close())
}

// element finds INTERFACE/NAME: the interface, and the name of a part of it.
func (f *someipFlags) element(text string) (t typed, name string, err error) {
	iface, name, ok := strings.Cut(text, "/")
	if !ok {
		return t, "", usageError{fmt.Errorf("%q: an interface and an rpc are needed, such as cabin.climate.v1.Climate/Describe", text)}
	}
	t, err = f.load(iface)
	return t, name, err
}

// event returns the event or field of a name, which may be that of its rpc.
func (t typed) event(name string) (*model.Event, error) {
	for _, e := range t.iface.AllEvents() {
		if (e.Name == name || e.RPC == name) && e.SOMEIP != nil && len(e.SOMEIP.Eventgroups) > 0 {
			return e, nil
		}
	}
	return nil, usageError{fmt.Errorf("%s has no event or field %s with a SOME/IP id and eventgroup", t.iface.FullName(), name)}
}
