package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carisma.dev/gateway/bridge/byhand"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip/runtime"
)

// offerCommand plays a service.
type offerCommand struct {
	someipFlags
	answers []string
}

func newSomeipOffer() *cobra.Command {
	var o offerCommand
	cmd := &cobra.Command{
		Use: "offer INTERFACE", Short: "Play a service",
		Long: `Offer offers an instance of an interface until it is interrupted and prints each
request as JSON on a line. Methods are answered as --answer says, otherwise with
every member zero; a getter's answer is the first value of its field, which
setters change. A line EVENT JSON on the standard input sends an event, or a new
value of a field.`,
		Example: `  carisma someip offer -i interfaces --instance left cabin.climate.v1.Climate \
    --answer 'Boost={"granted":30}' --answer 'GetTargetTemperature={"celsius":21}'`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error { return o.offer(cmd, a[0]) },
	}
	o.flags(cmd)
	cmd.Flags().StringArrayVar(&o.answers, "answer", nil, "answer `RPC=JSON` of a method or getter")
	return cmd
}

// playService joins the network and offers an instance.
func (f *someipFlags) playService(t typed, cfg byhand.PlayedConfig) (*byhand.Played, *runtime.Stack, error) {
	stack, network, err := f.join()
	if err != nil {
		return nil, nil, err
	}
	cfg.Network, cfg.Interface, cfg.Codec, cfg.Instance = network, t.iface, t.codec, t.instance
	p, err := byhand.Play(cfg)
	if err != nil {
		return nil, nil, errors.Join(err, stack.Close())
	}
	return p, stack, nil
}

func (o *offerCommand) offer(cmd *cobra.Command, name string) (err error) {
	t, err := o.load(name)
	if err != nil {
		return err
	}
	cfg := byhand.PlayedConfig{Answers: map[string]string{}}
	for _, a := range o.answers {
		rpc, text, ok := strings.Cut(a, "=")
		if !ok {
			return usageError{fmt.Errorf("--answer %q: RPC=JSON is wanted", a)}
		}
		cfg.Answers[rpc] = text
	}
	// The receiving goroutine must not wait for the terminal.
	requests, lost := make(chan byhand.Request, maxNotes), make(chan struct{}, 1)
	cfg.OnRequest = func(r byhand.Request) {
		select {
		case requests <- r:
		default:
			poke(lost)
		}
	}
	p, stack, err := o.playService(t, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack.Close()) }()
	go notifyLines(p, cmd.InOrStdin(), cmd.ErrOrStderr())
	for {
		select {
		case r := <-requests:
			if err := printRequest(cmd.OutOrStdout(), r); err != nil {
				return err
			}
		case <-lost:
			fmt.Fprintln(cmd.ErrOrStderr(), "some requests are not shown: the output is too slow")
		case <-cmd.Context().Done():
			return nil
		}
	}
}

func printRequest(w io.Writer, r byhand.Request) error {
	line := struct {
		RPC     string          `json:"rpc"`
		Peer    string          `json:"peer"`
		Request json.RawMessage `json:"request,omitempty"`
		Error   string          `json:"error,omitempty"`
	}{r.RPC, r.Peer.String(), r.Request, ""}
	if r.Err != nil {
		line.Error = r.Err.Error()
	}
	return json.NewEncoder(w).Encode(line)
}

// notifyLines sends an event for each line EVENT JSON.
func notifyLines(p *byhand.Played, in io.Reader, errs io.Writer) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		name, text, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		e := p.Event(name)
		switch {
		case name == "":
		case e == nil:
			fmt.Fprintf(errs, "there is no event or field %q\n", name)
		default:
			if err := p.Notify(e, text); err != nil {
				fmt.Fprintf(errs, "%s: %v\n", name, err)
			}
		}
	}
}

// notifyCommand sends an event.
type notifyCommand struct {
	someipFlags
	count    int
	interval time.Duration
}

func newSomeipNotify() *cobra.Command {
	var n notifyCommand
	cmd := &cobra.Command{
		Use: "notify INTERFACE/EVENT JSON", Short: "Offer an instance and send an event or a field's value",
		Long: `Notify offers the instance, waits for a subscriber of the event or field, sends
the event and withdraws the offer. The exit status is 1 if nobody subscribes.`,
		Args: args(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error { return n.notify(cmd, a[0], a[1]) },
	}
	n.flags(cmd)
	cmd.Flags().IntVarP(&n.count, "count", "n", 1, "how many times to send it")
	cmd.Flags().DurationVar(&n.interval, "interval", 100*time.Millisecond, "time between two")
	return cmd
}

func (n *notifyCommand) notify(cmd *cobra.Command, element, text string) (err error) {
	t, name, err := n.element(element)
	if err != nil {
		return err
	}
	event, err := t.event(name)
	if err != nil {
		return err
	}
	if n.interval <= 0 {
		return usageError{errors.New("--interval: more than 0 is wanted")}
	}
	if _, err := t.codec.Payload(event.Args, []byte(text)); err != nil {
		return err
	}
	subscribed := make(chan struct{}, 1)
	p, stack, err := n.playService(t, byhand.PlayedConfig{OnSubscribers: func(rpc string, endpoints int) {
		if rpc == event.RPC && endpoints > 0 {
			poke(subscribed)
		}
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack.Close()) }()
	waiting, cancel := context.WithTimeout(cmd.Context(), n.timeout)
	defer cancel()
	select {
	case <-subscribed:
	case <-waiting.Done():
		return fmt.Errorf("nobody subscribes to %s of %s: %w", event.Name, t.key(), context.Cause(waiting))
	}
	return n.send(cmd.Context(), p, event, text)
}

// farewell is how long the offer outlives the last event. The end of an offer
// goes another way than events do: it must not get there before them.
const farewell = 200 * time.Millisecond

func (n *notifyCommand) send(ctx context.Context, p *byhand.Played, e *model.Event, text string) error {
	for i := range n.count {
		if err := p.Notify(e, text); err != nil {
			return err
		}
		wait := n.interval
		if i == n.count-1 {
			wait = farewell
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
	return nil
}
