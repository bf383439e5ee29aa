package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"carisma.dev/gateway/someip/sd"
)

// Offering is a service instance that this network offers. Its methods are safe
// for concurrent use.
type Offering struct {
	n        *Network
	cfg      ServiceConfig
	key      InstanceKey
	ctx      context.Context //nolint:containedctx // the life of the offering, given to its handler
	cancel   context.CancelFunc
	methods  map[uint16]bool // whether fire and forget; nil: the handler decides
	events   map[uint16]*event
	wiring   *wiring
	udp, tcp *port

	subscribers []sd.Subscriber // guarded by n.mu
	groups      groupTargets
	stopped     bool // guarded by n.mu
}

// Offer makes a service instance available on the network. It is announced when
// Offer returns, so everything behind the handler must work by then (14.4).
func (n *Network) Offer(cfg ServiceConfig) (*Offering, error) {
	o, err := n.newOffering(cfg)
	if err != nil {
		return nil, err
	}
	for {
		n.mu.Lock()
		err = n.start(o)
		n.mu.Unlock()
		var busy endingError
		if !errors.As(err, &busy) {
			break
		}
		if err = busy.wait(); err != nil {
			break
		}
	}
	n.callbacks.run()
	if err != nil {
		o.cancel()
		return nil, err
	}
	return o, nil
}

func (n *Network) newOffering(cfg ServiceConfig) (*Offering, error) {
	o := &Offering{
		n: n, cfg: cfg,
		key:    InstanceKey{Service: cfg.Service, Instance: cfg.Instance, Major: cfg.Major},
		events: make(map[uint16]*event, len(cfg.Events)),
	}
	if cfg.Methods != nil {
		o.methods = make(map[uint16]bool, len(cfg.Methods))
		for _, m := range cfg.Methods {
			if m.ID == 0 || m.ID >= 0x7FFF {
				return nil, fmt.Errorf("runtime: %v: %#04x is no method id", o.key, m.ID)
			}
			o.methods[m.ID] = m.FireAndForget
		}
	}
	for _, e := range cfg.Events {
		switch {
		case e.ID <= 0x8000 || e.ID == 0xFFFF:
			return nil, fmt.Errorf("runtime: %v: %#04x is no event id", o.key, e.ID)
		case e.Reliable && cfg.TCPPort == 0, !e.Reliable && cfg.UDPPort == 0:
			return nil, fmt.Errorf("runtime: %v: event %#04x needs a port that is not offered", o.key, e.ID)
		}
		o.events[e.ID] = &event{o: o, cfg: e}
	}
	for _, g := range cfg.Eventgroups {
		if err := o.checkEventgroup(g); err != nil {
			return nil, err
		}
	}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o, nil
}

// start opens the ports and announces the offering. n.mu is held.
func (n *Network) start(o *Offering) (err error) {
	if n.closed {
		return ErrClosed
	}
	if n.offerings[o.key] != nil {
		return fmt.Errorf("%w: %v is offered already", ErrInUse, o.key)
	}
	if o.wiring, err = n.wiringOf(o.key); err != nil {
		return err
	}
	if o.wiring.dtls != nil && slices.ContainsFunc(o.cfg.Eventgroups, func(g EventgroupConfig) bool { return g.Threshold > 0 }) {
		return fmt.Errorf("runtime: %v: DTLS and multicast events", o.key)
	}
	for id, e := range o.events {
		e.traits = o.wiring.events[id]
	}
	defer func() {
		if err != nil {
			o.udp.release()
			o.tcp.release()
		}
	}()
	if o.udp, err = n.openPort(o.cfg.UDPPort, false, o); err != nil {
		return err
	}
	if o.tcp, err = n.openPort(o.cfg.TCPPort, true, o); err != nil {
		return err
	}
	var actions []sd.Action
	if !o.cfg.Unannounced {
		if actions, err = n.machine.Offer(n.now(), o.spec()); err != nil {
			return err
		}
	}
	n.offerings[o.key] = o
	o.udp.add(o)
	o.tcp.add(o)
	n.log.Info("offer.start", "instance", o.key, "udp", o.udp.addr(), "tcp", o.tcp.addr(), "announced", !o.cfg.Unannounced)
	o.subscribers = o.staticSubscribers()
	for _, e := range o.events {
		if targets := o.targets(e); len(targets) > 0 {
			e.setTargets(targets)
			o.tellSubscribers(e, len(targets))
		}
	}
	n.perform(actions)
	return nil
}

// spec is what discovery announces, and by which it judges subscriptions.
func (o *Offering) spec() sd.OfferSpec {
	spec := sd.OfferSpec{
		Key: o.key, Minor: o.cfg.Minor,
		Endpoints:     sd.Endpoints{UDP: o.udp.addr(), TCP: o.tcp.addr()},
		AnyEventgroup: o.cfg.Groups != nil, Configuration: o.cfg.Configuration, LoadBalancing: o.cfg.LoadBalancing,
	}
	for _, e := range o.cfg.Events {
		for _, id := range e.Eventgroups {
			i := slices.IndexFunc(spec.Eventgroups, func(g sd.Eventgroup) bool { return g.ID == id })
			if i < 0 {
				i = len(spec.Eventgroups)
				spec.Eventgroups = append(spec.Eventgroups, sd.Eventgroup{ID: id})
			}
			g := &spec.Eventgroups[i]
			g.UDP, g.TCP = g.UDP || !e.Reliable, g.TCP || e.Reliable
		}
	}
	for _, g := range o.cfg.Eventgroups {
		i := slices.IndexFunc(spec.Eventgroups, func(s sd.Eventgroup) bool { return s.ID == g.ID })
		if g.Threshold > 0 {
			spec.Eventgroups[i].Multicast = g.Multicast // in every Ack from the start (2.2)
		}
	}
	return spec
}

// Key returns what is offered.
func (o *Offering) Key() InstanceKey { return o.key }

// Endpoints returns where it is offered.
func (o *Offering) Endpoints() Endpoints {
	return Endpoints{UDP: o.udp.addr(), TCP: o.tcp.addr()}
}

// Stop withdraws the offer. The StopOffer has left when it returns; requests that
// were received before may still be answered, for [NetworkConfig.DrainTimeout]. TCP connections stay for the clients
// to close (SV-7).
func (o *Offering) Stop() {
	n := o.n
	n.mu.Lock()
	if !o.stopped && !n.closed {
		o.stopped = true
		n.log.Info("offer.stop", "instance", o.key)
		n.perform(n.machine.StopOffer(n.now(), o.key))
		delete(n.offerings, o.key)
		o.udp.remove(o)
		o.tcp.remove(o)
		o.udp.release()
		o.tcp.release()
	}
	n.mu.Unlock()
	n.callbacks.run()
	if n.cfg.DrainTimeout > 0 {
		time.AfterFunc(n.cfg.DrainTimeout, o.cancel) // requests received have that long
	} else {
		o.cancel()
	}
}

// subscriberAdded begins to send events to a subscriber, with the values that the
// fields have for a new one (SUB-7). The Ack has left before. n.mu is held, here
// and below.
func (n *Network) subscriberAdded(a sd.SubscriberAdded) {
	o := n.offerings[a.Instance]
	if o == nil {
		return
	}
	known := slices.Contains(o.subscribers, a.Subscriber)
	if !known {
		o.subscribers = append(o.subscribers, a.Subscriber)
		n.log.Info("subscriber.added", "instance", a.Instance, "eventgroup", a.Eventgroup, "peer", a.Peer)
	}
	o.groupJoined(a, known)
	for _, e := range o.events {
		if slices.Contains(e.cfg.Eventgroups, a.Eventgroup) {
			targets := o.targets(e)
			e.subscribe(targets, a)
			o.tellSubscribers(e, len(targets))
		}
	}
}

func (n *Network) subscriberRemoved(a sd.SubscriberRemoved) {
	o := n.offerings[a.Instance]
	if o == nil {
		return
	}
	n.log.Info("subscriber.removed", "instance", a.Instance, "eventgroup", a.Eventgroup, "peer", a.Peer, "reason", a.Reason)
	o.subscribers = slices.DeleteFunc(o.subscribers, func(s sd.Subscriber) bool { return s == a.Subscriber })
	o.groupLeft(a)
	for _, e := range o.events {
		if slices.Contains(e.cfg.Eventgroups, a.Eventgroup) {
			targets := o.targets(e)
			e.setTargets(targets)
			o.tellSubscribers(e, len(targets))
		}
	}
}

func (o *Offering) tellSubscribers(e *event, endpoints int) {
	if f := o.cfg.OnSubscribers; f != nil {
		o.n.callbacks.add(func() { f(e.cfg.ID, endpoints) })
	}
}

func (n *Network) conflict(a sd.OfferConflict) {
	o := n.offerings[a.Key]
	if a.Local && o != nil && o.cfg.IgnoreConflict != nil && o.cfg.IgnoreConflict(a.Configuration) {
		return
	}
	n.log.Warn("sd.conflict", "instance", a.Key, "peer", a.Peer, "local", a.Local)
	if a.Local && o != nil && o.cfg.OnConflict != nil {
		n.callbacks.add(func() { o.cfg.OnConflict(a.Peer) })
	}
}

// Subscribers returns the number of endpoints that an event would be sent to now. A
// multicast group counts as one.
func (o *Offering) Subscribers(event uint16) int {
	e := o.events[event]
	if e == nil {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.targets)
}
