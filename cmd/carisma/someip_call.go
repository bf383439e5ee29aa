package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"carisma.dev/gateway/bridge/byhand"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// callCommand calls methods, typed or by ids and bytes.
type callCommand struct {
	someipFlags
	hex  bool
	tcp  bool
	send bool
}

func newSomeipCall() *cobra.Command {
	var c callCommand
	cmd := &cobra.Command{
		Use:   "call INTERFACE/RPC [JSON] | call --hex SERVICE.INSTANCE METHOD [HEXBYTES]",
		Short: "Call a method, getter or setter",
		Long: `Call waits for the instance, sends the request and prints the response as JSON,
with --hex as hexadecimal digits. A fire-and-forget method prints nothing. An
error is printed with its return code, and the exit status is 1.`,
		Example: `  carisma someip call -i interfaces --instance left cabin.climate.v1.Climate/Boost '{"seconds":30}'
  carisma someip call --hex 6001.0001 0001 00ff1a`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if c.hex {
				return c.callHex(cmd, a)
			}
			if len(a) > 2 {
				return usageError{errors.New("INTERFACE/RPC and one JSON text are wanted; ids and bytes take --hex")}
			}
			return c.callTyped(cmd, a[0], strings.Join(a[1:], ""))
		},
	}
	c.flags(cmd)
	cmd.Flags().BoolVar(&c.hex, "hex", false, "call by ids, with a payload in hexadecimal")
	cmd.Flags().BoolVar(&c.tcp, "tcp", false, "with --hex, call over TCP (default UDP where the instance is offered over it)")
	cmd.Flags().BoolVar(&c.send, "send", false, "with --hex, send a fire-and-forget request")
	return cmd
}

func (c *callCommand) callHex(cmd *cobra.Command, a []string) (err error) {
	if len(a) < 2 {
		return usageError{errors.New("SERVICE.INSTANCE and METHOD are wanted")}
	}
	which, err := byhand.ParseInstance(a[0])
	if err != nil {
		return usageError{err}
	}
	method, err := byhand.ParseID(a[1])
	if err != nil {
		return usageError{err}
	}
	payload, err := byhand.ParseHex(strings.Join(a[2:], ""))
	if err != nil {
		return usageError{err}
	}
	s, err := c.open(cmd.Context(), which)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.leave()) }()
	ctx, cancel := context.WithTimeout(cmd.Context(), c.timeout)
	defer cancel()
	reliable := c.tcp || !s.endpoints.UDP.IsValid()
	if c.send {
		return s.Send(ctx, method, reliable, payload)
	}
	response, err := s.Call(ctx, method, reliable, payload)
	if err != nil {
		return err
	}
	if len(response.Payload) > 0 || response.Code == someip.OK {
		fmt.Fprintln(cmd.OutOrStdout(), hex.EncodeToString(response.Payload))
	}
	return failure(response, nil)
}

// failure returns the error that a response is.
func failure(r runtime.Response, iface *model.Interface) error {
	if r.Code == someip.OK && !r.Exception {
		return nil
	}
	return status.FromSOMEIP(r.Code, r.Exception, r.Payload, iface)
}

func (f *someipFlags) callTyped(cmd *cobra.Command, element, text string) error {
	t, rpc, err := f.element(element)
	if err != nil {
		return err
	}
	for _, m := range t.iface.AllMethods() {
		if m.RPC == rpc && m.SOMEIP != nil {
			return f.callMethod(cmd, t, m, text)
		}
	}
	return usageError{fmt.Errorf("%s has no method %s with a SOME/IP id", t.iface.FullName(), rpc)}
}

func (f *someipFlags) callMethod(cmd *cobra.Command, t typed, m *model.Method, text string) (err error) {
	payload, err := t.codec.Payload(m.In, []byte(text))
	if err != nil {
		return err
	}
	s, err := f.open(cmd.Context(), t.key())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.leave()) }()
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	if m.FireAndForget {
		return s.Send(ctx, m.SOMEIP.ID, m.SOMEIP.Reliable, payload)
	}
	response, err := s.Call(ctx, m.SOMEIP.ID, m.SOMEIP.Reliable, payload)
	if err != nil {
		return err
	}
	if err := failure(response, t.iface); err != nil {
		return err
	}
	line, err := t.codec.JSON(m.Out, response.Payload)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", line)
	return err
}

func newSomeipGet() *cobra.Command {
	var f someipFlags
	cmd := &cobra.Command{
		Use: "get INTERFACE/FIELD", Short: "Read a field",
		Long: `Get calls the getter of a field and prints the value as JSON.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			return f.access(cmd, a[0], "", "getter", func(x *model.Field) *model.Method { return x.Getter })
		},
	}
	f.flags(cmd)
	return cmd
}

func newSomeipSet() *cobra.Command {
	var f someipFlags
	cmd := &cobra.Command{
		Use: "set INTERFACE/FIELD JSON", Short: "Write a field",
		Long: `Set calls the setter of a field and prints the value that was accepted as JSON.`,
		Args: args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			return f.access(cmd, a[0], a[1], "setter", func(x *model.Field) *model.Method { return x.Setter })
		},
	}
	f.flags(cmd)
	return cmd
}

// access calls the getter or setter of a field.
func (f *someipFlags) access(cmd *cobra.Command, element, text, what string, of func(*model.Field) *model.Method) error {
	t, name, err := f.element(element)
	if err != nil {
		return err
	}
	var names []string
	for _, field := range t.iface.Fields {
		if m := of(field); m != nil && m.SOMEIP != nil {
			if field.Name == name {
				return f.callMethod(cmd, t, m, text)
			}
			names = append(names, field.Name)
		}
	}
	return usageError{fmt.Errorf("%s has no field %s with a %s; there are: %s", t.iface.FullName(), name, what, strings.Join(names, ", "))}
}
