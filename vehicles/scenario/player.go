package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"carisma.dev/gateway/vehicles/run"
)

// retryInterval is the time between two looks at something that may change.
const retryInterval = 20 * time.Millisecond

// Player plays scenarios against one running vehicle. It is not for concurrent
// use. Close ends the streams and calls that steps have begun.
type Player struct {
	runner  *run.Runner
	out     io.Writer
	clients map[string]*client
	streams map[string]*stream
	repeats map[string]*repeated
}

// NewPlayer returns a player that writes its transcript to out.
func NewPlayer(r *run.Runner, out io.Writer) *Player {
	return &Player{runner: r, out: out, clients: map[string]*client{}, streams: map[string]*stream{}, repeats: map[string]*repeated{}}
}

// Close ends everything that the steps have opened.
func (p *Player) Close() error {
	for _, w := range p.repeats {
		w.close()
	}
	for _, s := range p.streams {
		s.close()
	}
	var errs []error
	for _, c := range p.clients {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// Play plays the scenario. The first step that does not hold ends it with an
// error that names the step and its place in the file.
func (p *Player) Play(ctx context.Context, s *Scenario) error {
	fmt.Fprintf(p.out, "%s\n\n", s.Title)
	for i := range s.Steps {
		step := &s.Steps[i]
		lines, err := p.play(ctx, step)
		if err != nil {
			fmt.Fprintf(p.out, "FAIL %2d  %s\n         %v\n", i+1, step.Name, err)
			return fmt.Errorf("%s: step %d, %s: %w", step.Pos, i+1, step.Name, err)
		}
		fmt.Fprintf(p.out, "ok   %2d  %s\n", i+1, step.Name)
		for _, line := range lines {
			fmt.Fprintf(p.out, "         %s\n", line)
		}
	}
	return nil
}

// play returns the lines that a step adds to the transcript.
func (p *Player) play(ctx context.Context, s *Step) ([]string, error) {
	step, cancel := context.WithTimeout(ctx, s.Within)
	defer cancel()
	switch {
	case s.Wait != nil:
		return nil, p.wait(step, s.Wait)
	case s.Call != nil:
		return p.call(step, s.Call)
	case s.Watch != nil:
		return nil, p.watch(ctx, s.Watch) // lives longer than the step
	case s.Expect != nil:
		return p.expect(step, s.Expect)
	case s.Ends != nil:
		return p.ends(step, s.Ends)
	case s.List != nil:
		return p.list(step, s.List)
	case s.Play != "":
		return p.component(s.Play)
	case s.Start != "":
		return p.process(s.Start, (*run.Process).Start)
	case s.Stop != "":
		return p.process(s.Stop, (*run.Process).Stop)
	case s.Kill != "":
		return p.process(s.Kill, (*run.Process).Kill)
	case s.Reboot != "":
		return p.process(s.Reboot, (*run.Process).Reboot)
	case s.Repeat != nil:
		return p.repeat(ctx, step, s.Repeat) // lives longer than the step
	case s.Finish != nil:
		return p.finish(step, s.Finish)
	case s.Add != nil:
		return p.addService(step, s.Add)
	default:
		return p.removeService(step, s.Remove)
	}
}

func (p *Player) client(host string) (*client, error) {
	if c, ok := p.clients[host]; ok {
		return c, nil
	}
	h := p.runner.Host(host)
	if h == nil {
		return nil, fmt.Errorf("there is no host %q", host)
	}
	c, err := newClient(h, p.runner.Egress(host).String())
	if err == nil {
		p.clients[host] = c
	}
	return c, err
}

// until calls f until it returns nil, and returns its last error when the
// step's time is over.
func until(ctx context.Context, f func(context.Context) error) error {
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		timer := time.NewTimer(retryInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

func (p *Player) wait(ctx context.Context, w *Wait) error {
	c, err := p.client(w.Host)
	if err != nil {
		return err
	}
	for _, name := range w.Up {
		if err := until(ctx, func(ctx context.Context) error { return c.up(ctx, name) }); err != nil {
			return fmt.Errorf("%s is not up: %w", name, err)
		}
	}
	return nil
}

func (p *Player) call(ctx context.Context, call *Call) (lines []string, err error) {
	c, err := p.client(call.Target.Host)
	if err != nil {
		return nil, err
	}
	once := func(ctx context.Context) error {
		response, err := c.call(ctx, &call.Target)
		if call.Error != nil {
			text, err := call.Error.check(err)
			lines = []string{describe(&call.Target), "→ " + text}
			return err
		}
		if err != nil {
			return err
		}
		if !sameJSON(response, call.Response.text) {
			return fmt.Errorf("expected %s, got %s", call.Response.text, response)
		}
		lines = []string{describe(&call.Target), "→ " + response}
		return nil
	}
	if call.Retry {
		err = until(ctx, once)
	} else {
		err = once(ctx)
	}
	return lines, err
}

// describe is the line of the transcript that says what was called.
func describe(t *Target) string {
	text := t.Method + " " + t.Request.orEmpty()
	if t.Authority != "" {
		text = t.Authority + "  " + text
	}
	if t.Instance != "" {
		text += "  carisma-instance: " + t.Instance
	}
	return text
}

func (p *Player) watch(ctx context.Context, w *Watch) error {
	if old, ok := p.streams[w.As]; ok {
		old.close()
	}
	c, err := p.client(w.Target.Host)
	if err != nil {
		return err
	}
	s, err := c.open(ctx, &w.Target)
	if err != nil {
		return err
	}
	p.streams[w.As] = s
	return nil
}

func (p *Player) stream(name string) (*stream, error) {
	s, ok := p.streams[name]
	if !ok {
		return nil, fmt.Errorf("no stream is called %q", name)
	}
	return s, nil
}

func (p *Player) expect(ctx context.Context, e *Expect) ([]string, error) {
	s, err := p.stream(e.Of)
	if err != nil {
		return nil, err
	}
	last := "nothing"
	for {
		select {
		case item, ok := <-s.items:
			switch {
			case !ok:
				return nil, fmt.Errorf("the stream ended: %w", s.err)
			case hasMembers(item, e.Item.text):
				return []string{e.Of + " ← " + e.Item.text}, nil
			case e.Next:
				return nil, fmt.Errorf("expected %s, got %s", e.Item.text, item)
			}
			last = item
		case <-ctx.Done():
			return nil, fmt.Errorf("no item %s, the last one was %s", e.Item.text, last)
		}
	}
}

func (p *Player) ends(ctx context.Context, e *Ends) ([]string, error) {
	s, err := p.stream(e.Of)
	if err != nil {
		return nil, err
	}
	for {
		select {
		case _, ok := <-s.items:
			if ok {
				continue // sent before the end
			}
			text, err := e.Error.check(s.err)
			return []string{e.Of + " ends: " + text}, err
		case <-ctx.Done():
			return nil, errors.New("the stream did not end")
		}
	}
}

func (p *Player) list(ctx context.Context, l *List) (lines []string, err error) {
	c, err := p.client(l.Host)
	if err != nil {
		return nil, err
	}
	// A gateway may hear of an instance a moment after its proxy has the route.
	err = until(ctx, func(ctx context.Context) error {
		lines, err = l.ask(ctx, c)
		return err
	})
	return lines, err
}

func (l *List) ask(ctx context.Context, c *client) ([]string, error) {
	r := c.reflection(ctx)
	defer r.Reset()
	listed, err := r.ListServices()
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, name := range l.Services {
		if !slices.Contains(listed, protoreflect.FullName(name)) {
			return nil, fmt.Errorf("%s is not among %v", name, listed)
		}
		d, err := r.AsResolver().FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			return nil, err
		}
		service, ok := d.(protoreflect.ServiceDescriptor)
		if !ok {
			return nil, fmt.Errorf("%s is no service", name)
		}
		var rpcs []string
		for i := range service.Methods().Len() {
			rpcs = append(rpcs, string(service.Methods().Get(i).Name()))
		}
		lines = append(lines, name+": "+strings.Join(rpcs, ", "))
	}
	return lines, nil
}

func (p *Player) findProcess(name string) (*run.Process, error) {
	process := p.runner.Process(name)
	if process == nil {
		return nil, fmt.Errorf("there is no program %q", name)
	}
	return process, nil
}

func (p *Player) process(name string, do func(*run.Process) error) ([]string, error) {
	process, err := p.findProcess(name)
	if err != nil {
		return nil, err
	}
	return nil, do(process)
}

func (p *Player) component(name string) ([]string, error) {
	process, err := p.findProcess(name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := process.Run(&out); err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, name+": "+strings.TrimRight(line, "\n"))
	}
	return lines, nil
}
