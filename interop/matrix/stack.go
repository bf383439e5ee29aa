package matrix

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/runtime"
)

// Counts are the messages of a run of our stack.
type Counts struct {
	Sent, Received     uint64 // but those of service discovery
	SDSent, SDReceived uint64
	// Bad are those received that no peer should send.
	Bad uint64
}

// Stack is our stack as a program of the matrix: it runs until the input ends.
func Stack(args []string, in io.Reader, out io.Writer) error {
	s, err := startStack(args, out)
	if err != nil {
		return err
	}
	s.say("ready")
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if err := s.do(strings.Fields(lines.Text())); err != nil {
			return errors.Join(fmt.Errorf("%q: %w", lines.Text(), err), s.stack.Close())
		}
	}
	err = errors.Join(lines.Err(), s.stack.Close())
	counts, failed := json.Marshal(s.counts())
	s.say("stats", string(counts))
	return errors.Join(err, failed)
}

// stack is a running program.
type stack struct {
	stack    *runtime.Stack
	network  *runtime.Network
	offering *runtime.Offering
	client   *runtime.Client

	mu  sync.Mutex // guards out
	out io.Writer
}

func startStack(args []string, out io.Writer) (_ *stack, err error) {
	flags := flag.NewFlagSet("matrix", flag.ContinueOnError)
	role := flags.String("role", "serve", "serve or use")
	address := flags.String("unicast", "", "own address")
	bits := flags.Int("prefix-len", 24, "length of its subnet")
	device := flags.String("device", "", "network device")
	group := flags.String("sd-multicast", "", "multicast group of service discovery")
	multicast := flags.String("multicast", "", "multicast group of events")
	groups := flags.String("groups", "", "eventgroups")
	flags.String("peer", "", "address of the other side, which is not needed")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	var addrs [3]netip.Addr
	for i, text := range []string{*address, *group, *multicast} {
		if addrs[i], err = netip.ParseAddr(text); err != nil {
			return nil, err
		}
	}
	s := &stack{out: out}
	s.stack, err = runtime.Start(runtime.Config{
		Networks: []runtime.NetworkConfig{{
			Name: "net", Address: netip.PrefixFrom(addrs[0], *bits), Interface: *device,
			SD: runtime.SDConfig{
				Group: addrs[1], Port: SDPort, InitialDelayMax: 10 * time.Millisecond,
				RepetitionsBaseDelay: 10 * time.Millisecond,
			},
			ClientIDs:   runtime.Range{First: 0x2100, Last: 0x21FF},
			CallTimeout: time.Second, // a server that was killed does not answer
		}},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return nil, err
	}
	s.network = s.stack.Network("net")
	events := eventsOf(*groups)
	if err = s.network.Deploy(deployment(events)); err == nil {
		if *role == "serve" {
			err = s.serve(events, addrs[2])
		} else {
			err = s.use(events)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.stack.Close())
	}
	return s, nil
}

// eventsOf returns the events of eventgroups.
func eventsOf(groups string) (events []Event) {
	wanted := strings.Split(groups, ",")
	for _, e := range Events {
		if slices.Contains(wanted, strconv.Itoa(int(e.Group))) {
			events = append(events, e)
		}
	}
	return events
}

func (s *stack) serve(events []Event, multicast netip.Addr) (err error) {
	s.offering, err = s.network.Offer(service(events, multicast, runtime.HandlerFunc(s.answer)))
	for _, e := range events {
		if err == nil && e.Field {
			err = s.offering.SetField(e.ID, []byte(FieldValue))
		}
	}
	return err
}

func (s *stack) answer(_ context.Context, r *runtime.Request) {
	switch r.Method {
	case Echo, EchoLarge:
		_ = r.Respond(r.Payload) // an answer that is lost is the client's time-out
	case Refuse:
		_ = r.Fail(someip.ReturnCode(RefuseCode), true, nil)
	case Tell:
		s.say("told", payload(r.Payload))
	}
}

func (s *stack) use(events []Event) (err error) {
	ctx := context.Background()
	err = s.network.Observe(ctx, instance, func(a runtime.Availability) {
		if a.Up {
			s.say("up")
		} else {
			s.say("down")
		}
	})
	if err == nil {
		s.client, err = s.network.Client(instance)
	}
	for _, e := range events {
		if err != nil {
			break
		}
		_, err = s.client.Subscribe(ctx, runtime.SubscribeConfig{
			Eventgroup: e.Group, Events: []uint16{e.ID}, Unreliable: !e.TCP, Reliable: e.TCP,
			OnEvent: func(n runtime.Notification) { s.event(e, n) },
		})
	}
	return err
}

func (s *stack) event(e Event, n runtime.Notification) {
	check := "-"
	switch {
	case e.E2E == nil:
	case n.E2E.Status == e2e.OK:
		check = "ok"
	default:
		check = n.E2E.Status.String()
	}
	s.say("event", fmt.Sprintf("%x", n.Event), check, payload(n.Payload))
}

// do carries a command out.
func (s *stack) do(words []string) error {
	if len(words) < 3 {
		return errors.New("too few words")
	}
	id, err := strconv.ParseUint(words[len(words)-2], 16, 16)
	if err != nil {
		return err
	}
	data, err := hex.DecodeString(strings.TrimPrefix(words[len(words)-1], "-"))
	if err != nil {
		return err
	}
	ctx, tcp := context.Background(), words[1] == "tcp"
	switch words[0] {
	case "call":
		r, err := s.client.Call(ctx, uint16(id), tcp, data)
		if err != nil {
			s.say("failed", err.Error())
			return nil
		}
		s.say("answer", fmt.Sprintf("%x", uint8(r.Code)), payload(r.Payload))
		return nil
	case "send":
		return s.client.Send(ctx, uint16(id), tcp, data)
	case "notify":
		return s.offering.Notify(uint16(id), data)
	}
	return errors.New("no such command")
}

func (s *stack) counts() Counts {
	data, sd := s.network.Stats(), s.network.DiscoveryStats()
	return Counts{
		Sent: data.Sent, Received: data.Received, SDSent: sd.Sent, SDReceived: sd.Received,
		Bad: data.Malformed + data.WrongProtocol + data.Segments + data.WrongInterface + data.WrongType +
			data.WrongReturnCode + sd.Malformed + sd.BadOptions + sd.BadEntries + sd.UnknownEntries,
	}
}

func (s *stack) say(words ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintln(s.out, strings.Join(words, " ")) // whoever does not read is gone
}

func payload(b []byte) string {
	if len(b) == 0 {
		return "-"
	}
	return hex.EncodeToString(b)
}
