package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"carisma.dev/gateway/bridge/byhand"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// watchCommand watches events, typed or by ids.
type watchCommand struct {
	someipFlags
	hex   bool
	count int
}

func newSomeipWatch() *cobra.Command {
	var w watchCommand
	cmd := &cobra.Command{
		Use:   "watch INTERFACE/RPC | watch --hex SERVICE.INSTANCE EVENTGROUP [EVENT...]",
		Short: "Watch an event or a field",
		Long: `Watch subscribes to an event or field and prints each notification as JSON on a
line; with --hex to an eventgroup, and prints the event's id and its payload in
hexadecimal.`,
		Example: `  carisma someip watch -i interfaces --instance left cabin.climate.v1.Climate/WatchTargetTemperature
  carisma someip watch --hex 6001.0001 0001`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			switch {
			case w.hex:
				return w.watchHex(cmd, a)
			case len(a) > 1:
				return usageError{errors.New("one INTERFACE/RPC is wanted; ids take --hex")}
			default:
				return w.watchTyped(cmd, a[0])
			}
		},
	}
	w.flags(cmd)
	cmd.Flags().BoolVar(&w.hex, "hex", false, "watch an eventgroup by ids")
	cmd.Flags().IntVarP(&w.count, "count", "n", 0, "end after so many notifications (default never)")
	return cmd
}

func (w *watchCommand) watchHex(cmd *cobra.Command, a []string) error {
	if len(a) < 2 {
		return usageError{errors.New("SERVICE.INSTANCE and EVENTGROUP are wanted")}
	}
	which, err := byhand.ParseInstance(a[0])
	if err != nil {
		return usageError{err}
	}
	var cfg runtime.SubscribeConfig
	if cfg.Eventgroup, err = byhand.ParseID(a[1]); err != nil {
		return usageError{err}
	}
	for _, text := range a[2:] {
		id, err := byhand.ParseID(text)
		if err != nil {
			return usageError{err}
		}
		cfg.Events = append(cfg.Events, id)
	}
	return w.watch(cmd, which, cfg, func(event uint16, payload []byte) (string, error) {
		return fmt.Sprintf("%04x %s", event, hex.EncodeToString(payload)), nil
	})
}

func (w *watchCommand) watchTyped(cmd *cobra.Command, element string) error {
	t, name, err := w.element(element)
	if err != nil {
		return err
	}
	e, err := t.event(name)
	if err != nil {
		return err
	}
	cfg := runtime.SubscribeConfig{
		Eventgroup: e.SOMEIP.Eventgroups[0], Events: []uint16{e.SOMEIP.ID},
		Unreliable: !e.SOMEIP.Reliable, Reliable: e.SOMEIP.Reliable,
	}
	return w.watch(cmd, t.key(), cfg, func(_ uint16, payload []byte) (string, error) {
		line, err := t.codec.JSON(e.Args, payload)
		return string(line), err
	})
}

// note is a notification with its payload kept.
type note struct {
	event   uint16
	payload []byte
}

// maxNotes is how many notifications wait for a slow terminal.
const maxNotes = 1024

// watch prints notifications, each as format writes it.
func (w *watchCommand) watch(cmd *cobra.Command, which someip.InstanceKey, cfg runtime.SubscribeConfig, format func(uint16, []byte) (string, error)) (err error) {
	s, err := w.open(cmd.Context(), which)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.leave()) }()
	if !cfg.Unreliable && !cfg.Reliable {
		cfg.Unreliable, cfg.Reliable = s.endpoints.UDP.IsValid(), s.endpoints.TCP.IsValid()
	}
	// The receiving goroutine must not wait for the terminal.
	notes, lost := make(chan note, maxNotes), make(chan struct{}, 1)
	refused := make(chan struct{}, 1)
	cfg.OnEvent = func(n runtime.Notification) {
		select {
		case notes <- note{n.Event, append([]byte(nil), n.Payload...)}:
		default:
			poke(lost)
		}
	}
	cfg.OnState = func(st runtime.SubscriptionStatus) {
		if st.State == runtime.SubscriptionRefused {
			poke(refused)
		}
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if _, err := s.Subscribe(ctx, cfg); err != nil {
		return err
	}
	for n := 0; w.count == 0 || n < w.count; {
		select {
		case x := <-notes:
			line, err := format(x.event, x.payload)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), line); err != nil {
				return err
			}
			n++
		case <-lost:
			fmt.Fprintln(cmd.ErrOrStderr(), "some notifications were lost: the output is too slow")
		case <-refused:
			return fmt.Errorf("%s refuses eventgroup %04x", s.Key(), cfg.Eventgroup)
		case <-cmd.Context().Done():
			return nil
		}
	}
	return nil
}

// poke puts something into a channel that has room for one.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
