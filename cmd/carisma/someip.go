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
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/proto"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

func newSomeip() *cobra.Command {
	cmd := &cobra.Command{
		Use: "someip", Short: "Speak SOME/IP by hand",
		Long: `The commands below join a SOME/IP network with an address of their own, which no
other program on it may have.`,
	}
	cmd.AddCommand(newSomeipCall(), newSomeipWatch())
	return cmd
}

// someipFlags say which network is joined and which instance is meant.
type someipFlags struct {
	address    string
	group      string
	port       uint16
	device     string
	clientID   uint16
	interfaces []string
	instance   string
	timeout    time.Duration
	verbose    bool
}

func (f *someipFlags) flags(cmd *cobra.Command) {
	address := os.Getenv("CARISMA_ADDRESS")
	if bits := os.Getenv("CARISMA_PREFIX_LEN"); address != "" && bits != "" {
		address += "/" + bits
	}
	group := os.Getenv("CARISMA_SD_GROUP")
	if group == "" {
		group = runtime.DefaultSDGroup().String()
	}
	fs := cmd.Flags()
	fs.StringVar(&f.address, "address", address, "own `address` on the network with the length of its prefix, such as 10.77.1.9/24")
	fs.StringVar(&f.group, "group", group, "multicast group of service discovery")
	fs.Uint16Var(&f.port, "port", runtime.DefaultSDPort, "port of service discovery")
	fs.StringVar(&f.device, "device", os.Getenv("CARISMA_INTERFACE"), "network device (default the one with the address)")
	fs.Uint16Var(&f.clientID, "client-id", 0x1500, "SOME/IP client id")
	fs.StringSliceVarP(&f.interfaces, "interfaces", "i", nil, "interface files (.proto) or directories with them")
	fs.StringVar(&f.instance, "instance", "", "instance name or id, such as left or 0x0001 (default the only one of the interface)")
	fs.DurationVar(&f.timeout, "timeout", 10*time.Second, "how long to wait for the instance, and for an answer")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "log what the stack does")
}

// parseID reads an id as people write it, in hexadecimal or decimal.
func parseID(text string) (uint16, error) {
	v, err := strconv.ParseUint(text, 0, 16)
	return uint16(v), err
}

// someipSession is a network that was joined, for one instance of an interface.
type someipSession struct {
	iface  *model.Interface
	codec  *jsoncodec.Codec
	client *runtime.Client
	stack  *runtime.Stack
	net    *runtime.Network
}

// open joins the network for the interface with the given full name.
func (f *someipFlags) open(interfaceName string) (*someipSession, error) {
	if len(f.interfaces) == 0 {
		return nil, usageError{errors.New("which interfaces? give their files or directories with -i")}
	}
	set, err := proto.Load(f.interfaces...)
	if err != nil {
		return nil, err
	}
	iface := set.Interface(interfaceName)
	switch {
	case iface == nil:
		return nil, usageError{fmt.Errorf("there is no interface %s; there are: %s", interfaceName, interfaceNames(set))}
	case iface.SOMEIP == nil:
		return nil, fmt.Errorf("%s: %s has no SOME/IP deployment", iface.Pos, interfaceName)
	}
	instance, err := f.instanceID(iface)
	if err != nil {
		return nil, err
	}
	codec, err := jsoncodec.New(set.Descriptors(interfaceName))
	if err != nil {
		return nil, err
	}
	s := &someipSession{iface: iface, codec: codec}
	if err := f.join(s); err != nil {
		return nil, err
	}
	s.client, err = s.net.Client(runtime.InstanceKey{
		Service: iface.SOMEIP.ServiceID, Instance: instance, Major: uint8(iface.Version.Major),
	})
	if err != nil {
		return nil, errors.Join(err, s.stack.Close())
	}
	return s, nil
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
	if id, err := parseID(f.instance); err == nil && id != 0 && id != someip.AnyInstance {
		return id, nil
	}
	var names []string
	for _, in := range known {
		names = append(names, fmt.Sprintf("%s (0x%04x)", in.Name, in.ID))
	}
	return 0, usageError{fmt.Errorf("--instance %q: name one of %s, or an id", f.instance, strings.Join(names, ", "))}
}

func (f *someipFlags) join(s *someipSession) error {
	prefix, err := netip.ParsePrefix(f.address)
	if err != nil {
		return usageError{fmt.Errorf("--address %q: an address with the length of its prefix is needed, such as 10.77.1.9/24", f.address)}
	}
	group, err := netip.ParseAddr(f.group)
	if err != nil {
		return usageError{fmt.Errorf("--group: %w", err)}
	}
	level := slog.LevelError
	if f.verbose {
		level = slog.LevelDebug
	}
	s.stack, err = runtime.Start(runtime.Config{
		Networks: []runtime.NetworkConfig{{
			Name: "network", Address: prefix, Interface: f.device,
			SD:        runtime.SDConfig{Group: group, Port: f.port},
			ClientIDs: runtime.Range{First: f.clientID, Last: f.clientID},
		}},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	})
	if err != nil {
		return err
	}
	s.net = s.stack.Network("network")
	return nil
}

// close leaves the network.
func (s *someipSession) close() error {
	s.client.Close()
	return s.stack.Close()
}

// available waits until the instance is offered.
func (s *someipSession) available(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	up := make(chan struct{}, 1)
	if err := s.net.Observe(ctx, s.client.Key(), func(a runtime.Availability) {
		if a.Up {
			select {
			case up <- struct{}{}:
			default:
			}
		}
	}); err != nil {
		return err
	}
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		key := s.client.Key()
		return fmt.Errorf("0x%04x.0x%04x v%d is not offered: %w", key.Service, key.Instance, key.Major, context.Cause(ctx))
	}
}

// splitElement splits interface/rpc.
func splitElement(text string) (iface, rpc string, err error) {
	iface, rpc, ok := strings.Cut(text, "/")
	if !ok {
		return "", "", usageError{fmt.Errorf("%q: an interface and an rpc are needed, such as cabin.climate.v1.Climate/Describe", text)}
	}
	return iface, rpc, nil
}

func newSomeipCall() *cobra.Command {
	var f someipFlags
	cmd := &cobra.Command{
		Use:   "call INTERFACE/RPC [JSON]",
		Short: "Call a method, getter or setter",
		Long: `Call waits for the instance, sends the request and prints the response as JSON.
A fire-and-forget method prints nothing. An error is printed with its return code, and
the exit status is 1.`,
		Args: args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			return f.call(cmd, a[0], strings.Join(a[1:], ""))
		},
	}
	f.flags(cmd)
	return cmd
}

func (f *someipFlags) call(cmd *cobra.Command, element, text string) (err error) {
	ifaceName, rpc, err := splitElement(element)
	if err != nil {
		return err
	}
	s, err := f.open(ifaceName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var m *model.Method
	for _, candidate := range s.iface.AllMethods() {
		if candidate.RPC == rpc {
			m = candidate
		}
	}
	if m == nil || m.SOMEIP == nil {
		return usageError{fmt.Errorf("%s has no method %s with a SOME/IP id", ifaceName, rpc)}
	}
	payload, err := s.codec.Payload(m.In, []byte(text))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	if err := s.available(ctx); err != nil {
		return err
	}
	if m.FireAndForget {
		return s.client.Send(ctx, m.SOMEIP.ID, m.SOMEIP.Reliable, payload)
	}
	response, err := s.client.Call(ctx, m.SOMEIP.ID, m.SOMEIP.Reliable, payload)
	if err != nil {
		return err
	}
	if response.Code != someip.OK {
		return status.FromSOMEIP(response.Code, response.Exception, response.Payload, s.iface)
	}
	line, err := s.codec.JSON(m.Out, response.Payload)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", line)
	return err
}

func newSomeipWatch() *cobra.Command {
	var f someipFlags
	var count int
	cmd := &cobra.Command{
		Use:   "watch INTERFACE/RPC",
		Short: "Watch an event or a field",
		Long:  `Watch subscribes to an event or field and prints each notification as JSON on a line.`,
		Args:  args(cobra.ExactArgs(1)),
		RunE:  func(cmd *cobra.Command, a []string) error { return f.watch(cmd, a[0], count) },
	}
	f.flags(cmd)
	cmd.Flags().IntVarP(&count, "count", "n", 0, "end after so many notifications (default never)")
	return cmd
}

func (f *someipFlags) watch(cmd *cobra.Command, element string, count int) (err error) {
	ifaceName, rpc, err := splitElement(element)
	if err != nil {
		return err
	}
	s, err := f.open(ifaceName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var e *model.Event
	for _, candidate := range s.iface.AllEvents() {
		if candidate.RPC == rpc {
			e = candidate
		}
	}
	if e == nil || e.SOMEIP == nil || len(e.SOMEIP.Eventgroups) == 0 {
		return usageError{fmt.Errorf("%s has no event or field %s with a SOME/IP id and eventgroup", ifaceName, rpc)}
	}
	waiting, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	if err := s.available(waiting); err != nil {
		return err
	}
	// The receiving goroutine must not wait for the terminal.
	items := make(chan []byte, 256)
	lost := make(chan struct{}, 1)
	subscription, err := s.client.Subscribe(cmd.Context(), runtime.SubscribeConfig{
		Eventgroup: e.SOMEIP.Eventgroups[0],
		Events:     []uint16{e.SOMEIP.ID},
		Unreliable: !e.SOMEIP.Reliable, Reliable: e.SOMEIP.Reliable,
		OnEvent: func(n runtime.Notification) {
			select {
			case items <- append([]byte(nil), n.Payload...):
			default:
				select {
				case lost <- struct{}{}:
				default:
				}
			}
		},
	})
	if err != nil {
		return err
	}
	defer subscription.Close()
	for n := 0; count == 0 || n < count; n++ {
		select {
		case payload := <-items:
			line, err := s.codec.JSON(e.Args, payload)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", line); err != nil {
				return err
			}
		case <-lost:
			fmt.Fprintln(cmd.ErrOrStderr(), "some notifications were lost: the output is too slow")
			n--
		case <-cmd.Context().Done():
			return nil
		}
	}
	return nil
}
