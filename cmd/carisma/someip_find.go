package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carisma.dev/gateway/bridge/byhand"
	"carisma.dev/gateway/codegen/proto"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// findCommand lists what is offered.
type findCommand struct {
	networkFlags
	output
	interfaces []string
	wait       time.Duration
}

func newSomeipFind() *cobra.Command {
	var f findCommand
	cmd := &cobra.Command{
		Use: "find [SERVICE[.INSTANCE]]", Short: "List the instances that are offered",
		Long: `Find listens for a while and lists every instance that is offered, or those of
one service, which it also asks for. The exit status is 1 if there is none.`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error { return f.find(cmd, a) },
	}
	f.networkFlags.flags(cmd)
	f.flag(cmd)
	cmd.Flags().StringSliceVarP(&f.interfaces, "interfaces", "i", nil, "interface files (.proto) or directories with them, for names")
	cmd.Flags().DurationVar(&f.wait, "wait", 2500*time.Millisecond, "how long to listen: longer than offers are apart")
	return cmd
}

// offered is an instance as find shows it.
type offered struct {
	Service       string   `json:"service"`
	Instance      string   `json:"instance"`
	Major         uint8    `json:"major"`
	Minor         uint32   `json:"minor"`
	UDP           string   `json:"udp,omitempty"`
	TCP           string   `json:"tcp,omitempty"`
	Interface     string   `json:"interface,omitempty"`
	Name          string   `json:"name,omitempty"` // of the instance
	Configuration []string `json:"configuration,omitempty"`
}

func (f *findCommand) find(cmd *cobra.Command, a []string) (err error) {
	filter := someip.InstanceKey{Service: someip.AnyService, Instance: someip.AnyInstance, Major: someip.AnyMajor}
	if len(a) > 0 {
		if filter, err = byhand.ParseInstance(a[0]); err != nil {
			return usageError{err}
		}
	}
	var known *proto.Set
	if len(f.interfaces) > 0 {
		if known, err = proto.Load(f.interfaces...); err != nil {
			return err
		}
	}
	stack, network, err := f.join()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack.Close()) }()
	ctx, cancel := context.WithTimeout(cmd.Context(), f.wait)
	defer cancel()
	found, err := byhand.Look(ctx, network, filter)
	if err != nil {
		return err
	}
	list := make([]offered, 0, len(found))
	for _, x := range found {
		list = append(list, describeOffer(x, known))
	}
	err = f.print(cmd, list, func(t *table) {
		t.row("SERVICE", "INSTANCE", "VERSION", "UDP", "TCP", "INTERFACE", "NAME", "CONFIGURATION")
		for _, o := range list {
			t.row(o.Service, o.Instance, fmt.Sprintf("%d.%d", o.Major, o.Minor), o.UDP, o.TCP, o.Interface, o.Name, strings.Join(o.Configuration, " "))
		}
	})
	if err == nil && len(list) == 0 {
		return exitError(statusFailed)
	}
	return err
}

func describeOffer(a runtime.Availability, known *proto.Set) offered {
	o := offered{
		Service: fmt.Sprintf("0x%04x", a.Key.Service), Instance: fmt.Sprintf("0x%04x", a.Key.Instance),
		Major: a.Key.Major, Minor: a.Minor, UDP: endpoint(a.Endpoints.UDP), TCP: endpoint(a.Endpoints.TCP),
		Configuration: a.Configuration,
	}
	if known != nil {
		if i := known.BySOMEIP(a.Key.Service, a.Key.Major); i != nil {
			o.Interface, o.Name = i.FullName(), i.SOMEIP.InstanceName(a.Key.Instance)
		}
	}
	return o
}

func endpoint(at netip.AddrPort) string {
	if !at.IsValid() {
		return ""
	}
	return at.String()
}
