package byhand

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"carisma.dev/gateway/bridge/jsoncodec"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// PlayedConfig says how a service is played.
type PlayedConfig struct {
	Network   *runtime.Network
	Interface *model.Interface // with a SOME/IP deployment
	Codec     *jsoncodec.Codec // of the interface
	Instance  uint16
	// Answers are the responses of methods and the first values of fields, in JSON
	// by the name of the rpc: a getter's for its field. Without one every member
	// is zero.
	Answers map[string]string
	// OnRequest, if set, hears of each request. It must not block.
	OnRequest func(Request)
	// OnSubscribers, if set, hears to how many endpoints an event goes, by the name
	// of its rpc. It must not block.
	OnSubscribers func(rpc string, endpoints int)
}

// Request is a request to a played service.
type Request struct {
	RPC     string
	Peer    netip.AddrPort
	Request []byte // JSON, nil if the payload cannot be read
	Err     error  // why not
}

// Played is an instance of an interface whose answers are given beforehand. Its
// fields keep what is set and tell their subscribers.
type Played struct {
	cfg      PlayedConfig
	methods  map[uint16]*model.Method
	setters  map[uint16]*model.Field
	getters  map[uint16]*model.Field
	events   map[uint16]*model.Event
	answers  map[uint16][]byte // payloads
	offering *runtime.Offering

	mu     sync.Mutex
	values map[*model.Field][]byte // payloads
}

// Play offers the service. Its errors name the answer that does not fit.
func Play(cfg PlayedConfig) (*Played, error) {
	p := &Played{
		cfg: cfg, methods: map[uint16]*model.Method{}, events: map[uint16]*model.Event{},
		setters: map[uint16]*model.Field{}, getters: map[uint16]*model.Field{},
		answers: map[uint16][]byte{}, values: map[*model.Field][]byte{},
	}
	offer := runtime.ServiceConfig{
		Service: cfg.Interface.SOMEIP.ServiceID, Instance: cfg.Instance,
		Major: uint8(cfg.Interface.Version.Major), Minor: cfg.Interface.Version.Minor,
		UDPPort: runtime.AutoPort, TCPPort: runtime.AutoPort, Handler: p,
		Methods: []runtime.MethodConfig{}, OnSubscribers: p.subscribers,
	}
	if err := errors.Join(p.addMethods(&offer), p.addFields()); err != nil {
		return nil, err
	}
	p.addEvents(&offer)
	for rpc := range cfg.Answers {
		if p.method(rpc) == nil {
			return nil, fmt.Errorf("%s has no method %s with a SOME/IP id", cfg.Interface.FullName(), rpc)
		}
	}
	if err := p.offer(offer); err != nil {
		return nil, err
	}
	return p, nil
}

// offer offers the service and gives its fields their first values. A request that
// is there at once waits until both are done.
func (p *Played) offer(offer runtime.ServiceConfig) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.offering, err = p.cfg.Network.Offer(offer); err != nil {
		return err
	}
	for f, value := range p.values {
		if n := f.Notifier; n != nil && p.events[idOf(n.SOMEIP)] == n {
			err = errors.Join(err, p.offering.SetField(n.SOMEIP.ID, value))
		}
	}
	if err != nil {
		p.offering.Stop()
	}
	return err
}

func idOf(e *model.SOMEIPElement) uint16 {
	if e == nil {
		return 0
	}
	return e.ID
}

func (p *Played) addMethods(offer *runtime.ServiceConfig) (errs error) {
	for _, m := range p.cfg.Interface.AllMethods() {
		if m.SOMEIP == nil {
			continue
		}
		p.methods[m.SOMEIP.ID] = m
		offer.Methods = append(offer.Methods, runtime.MethodConfig{ID: m.SOMEIP.ID, FireAndForget: m.FireAndForget})
		if m.FireAndForget {
			continue
		}
		payload, err := p.cfg.Codec.Payload(m.Out, []byte(p.cfg.Answers[m.RPC]))
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("the answer of %s: %w", m.RPC, err))
		}
		p.answers[m.SOMEIP.ID] = payload
	}
	return errs
}

func (p *Played) addFields() (errs error) {
	for _, f := range p.cfg.Interface.Fields {
		var value []byte
		switch {
		case f.Getter != nil && f.Getter.SOMEIP != nil:
			value = p.answers[f.Getter.SOMEIP.ID]
			p.getters[f.Getter.SOMEIP.ID] = f
		case f.Notifier != nil && f.Notifier.SOMEIP != nil:
			var err error
			if value, err = p.cfg.Codec.Payload(f.Notifier.Args, nil); err != nil {
				errs = errors.Join(errs, fmt.Errorf("the value of %s: %w", f.Name, err))
			}
		}
		if f.Setter != nil && f.Setter.SOMEIP != nil {
			p.setters[f.Setter.SOMEIP.ID] = f
		}
		p.values[f] = value
	}
	return errs
}

func (p *Played) addEvents(offer *runtime.ServiceConfig) {
	for _, e := range p.cfg.Interface.AllEvents() {
		if e.SOMEIP == nil || len(e.SOMEIP.Eventgroups) == 0 {
			continue
		}
		p.events[e.SOMEIP.ID] = e
		offer.Events = append(offer.Events, runtime.EventConfig{
			ID: e.SOMEIP.ID, Reliable: e.SOMEIP.Reliable, Eventgroups: e.SOMEIP.Eventgroups, Field: e.Field != nil,
		})
	}
}

func (p *Played) method(rpc string) *model.Method {
	for _, m := range p.methods {
		if m.RPC == rpc {
			return m
		}
	}
	return nil
}

// Event returns the event or notifier with a name, or with the name of its rpc; nil
// if there is none on SOME/IP.
func (p *Played) Event(name string) *model.Event {
	for _, e := range p.events {
		if e.RPC == name || e.Name == name {
			return e
		}
	}
	return nil
}

// ServeSOMEIP implements [runtime.Handler].
func (p *Played) ServeSOMEIP(_ context.Context, r *runtime.Request) {
	m := p.methods[r.Method]
	in, err := p.cfg.Codec.JSON(m.In, r.Payload)
	if p.cfg.OnRequest != nil {
		p.cfg.OnRequest(Request{RPC: m.RPC, Peer: r.Peer, Request: in, Err: err})
	}
	switch {
	case r.NoReturn:
	case err != nil:
		_ = r.Fail(someip.MalformedMessage, true, nil) // the client will notice
	default:
		_ = r.Respond(p.answer(r))
	}
}

// answer returns the payload of an answer; a setter's is the value accepted.
func (p *Played) answer(r *runtime.Request) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.getters[r.Method]; f != nil {
		return p.values[f]
	}
	f := p.setters[r.Method]
	if f == nil {
		return p.answers[r.Method]
	}
	p.values[f] = append([]byte(nil), r.Payload...)
	if f.Notifier != nil && f.Notifier.SOMEIP != nil {
		_ = p.offering.Notify(f.Notifier.SOMEIP.ID, r.Payload) // fails only where it does not fit: then nobody gets it
	}
	return p.values[f]
}

// Notify sends an event, or a new value of a field, given in JSON.
func (p *Played) Notify(e *model.Event, text string) error {
	payload, err := p.cfg.Codec.Payload(e.Args, []byte(text))
	if err != nil {
		return err
	}
	if e.Field != nil {
		p.mu.Lock()
		p.values[e.Field] = payload
		p.mu.Unlock()
	}
	return p.offering.Notify(e.SOMEIP.ID, payload)
}

func (p *Played) subscribers(event uint16, endpoints int) {
	if p.cfg.OnSubscribers != nil {
		p.cfg.OnSubscribers(p.events[event].RPC, endpoints)
	}
}

// Stop withdraws the offer.
func (p *Played) Stop() { p.offering.Stop() }
