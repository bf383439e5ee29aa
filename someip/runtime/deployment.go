package runtime

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/tp"
)

// Deployment says how the messages of a service travel, where that is more than
// one message in a datagram. It holds for what is offered here and for what is
// used from others: both sides need the same one. See [Network.Deploy].
type Deployment struct {
	// Instance is what it is for. With someip.AnyInstance it is for every
	// instance that has no deployment of its own.
	Instance InstanceKey
	// Requests and Responses are by method id, Events by event id. What is not
	// listed has the zero MessageConfig.
	Requests, Responses, Events map[uint16]MessageConfig
	// Minor is the minor version that MinorMatch compares offers with.
	Minor      uint32
	MinorMatch MinorMatch
	// TLS and DTLS protect its connections and its datagrams; nil: nothing does.
	// Package endpoint/secure has both. What came unprotected is not taken where it
	// should not be, so there are no multicast events with DTLS.
	TLS  endpoint.StreamLayer
	DTLS endpoint.PacketLayer
}

// MinorMatch says which offers are taken by their minor version (CL-7). An instance
// that is offered in another one is as if it were not.
type MinorMatch uint8

// Ways to match.
const (
	MinorAny     MinorMatch = iota // whatever it is
	MinorMinimum                   // that of the deployment, or above
	MinorExact                     // that of the deployment
)

// acceptsMinor reports whether an offer is taken. n.mu is held.
func (n *Network) acceptsMinor(key InstanceKey, minor uint32) bool {
	switch d := n.deploymentOf(key); d.MinorMatch {
	case MinorMinimum:
		return minor >= d.Minor
	case MinorExact:
		return minor == d.Minor
	default:
		return true
	}
}

// MessageConfig says how the messages of one method or event travel in one
// direction. The zero value: each by itself, in one datagram, unprotected.
type MessageConfig struct {
	// TP lets messages that exceed a datagram go as segments (TP-3). Nil: they
	// are refused, and segments that come are dropped (TP-10).
	TP *tp.Rule
	// MaxPayload bounds the payload of a segmented message in bytes, sent or
	// received (TP-8). 0: [NetworkConfig.MaxMessage].
	MaxPayload int
	// E2E protects the messages end to end. Nil: it does not.
	E2E *E2EConfig
	// Debounce and Retention let messages over UDP wait for others to the same peer
	// and share a datagram with them (2.1). Debounce is the least time between two
	// datagrams with a message of this method or event; Retention the longest time
	// that one waits for company. 0 and 0: it is sent at once. (vsomeip waits 2 ms
	// and 5 ms unless told otherwise.)
	Debounce, Retention time.Duration
	// Collect lets messages over UDP wait only as long as the process has more of
	// them ready: until a receiver has handed over all that came together, or the
	// goroutines that can run have run; at most for Retention, or [DefaultCollect] if
	// that is 0. So messages share datagrams, and datagrams system calls, under
	// load, and hardly wait without. Several datagrams of a peer leave with one call.
	Collect bool
}

// DefaultCollect bounds the wait of a message that is collected while others are ready.
const DefaultCollect = time.Millisecond

// E2EConfig says how messages are protected. The sender inserts the E2E header,
// the receiver checks and removes it: applications never see it (12.1). Each
// event, and each method with each client, is a stream with a counter of its own.
type E2EConfig struct {
	e2e.Config
	// Vsomeip applies what vsomeip does differently, for the instance at hand
	// (12.5); see [e2e.Config.ForVsomeip].
	Vsomeip bool
	// Drop lets a message that is not correct and new be lost: a request is not
	// served, an event not delivered, and a call fails with *[E2EError]. Otherwise
	// it is delivered with the verdict, for the application to decide (case 112).
	Drop bool
}

// compile returns the configuration for an instance.
func (c E2EConfig) compile(instance uint16) (e2e.Config, error) {
	cfg := c.Config
	if c.Vsomeip {
		var err error
		if cfg, err = cfg.ForVsomeip(instance); err != nil {
			return cfg, err
		}
	}
	return cfg, cfg.Validate()
}

// Deploy says how the messages of a service travel. It comes before the service is
// offered or used: changing the deployment of what is in use fails with [ErrInUse].
// The maps must not be changed afterwards.
func (n *Network) Deploy(d Deployment) error {
	one := d.Instance
	if one.Instance == someip.AnyInstance {
		one.Instance = 1
	}
	if !one.Valid() {
		return fmt.Errorf("runtime: deployment of %v: service and major must be given", d.Instance)
	}
	if _, err := n.compile(d, one); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if old, ok := n.deployments[d.Instance]; ok && reflect.DeepEqual(old, d) {
		return nil
	}
	for key := range n.offerings {
		if key.Matches(d.Instance) {
			return fmt.Errorf("%w: %v is offered", ErrInUse, key)
		}
	}
	for key := range n.remotes {
		if key.Matches(d.Instance) {
			return fmt.Errorf("%w: %v has clients", ErrInUse, key)
		}
	}
	n.deployments[d.Instance] = d
	return nil
}

// wiring is the deployment of one instance, with the state of its streams.
type wiring struct {
	requests, responses, events map[uint16]*traits

	tls  endpoint.StreamLayer
	dtls endpoint.PacketLayer
}

// traits are what a MessageConfig became; nil stands for the zero one.
type traits struct {
	tp         *tp.Rule
	maxPayload int
	guard      *guard // nil: not protected

	debounce, retention time.Duration
	collect             bool
}

// waits reports whether messages may wait to share a datagram.
func (t *traits) waits() bool { return t.debounce+t.retention > 0 } // collect has a retention

// handled reports whether a message of a size over UDP is more than a datagram that
// leaves at once.
func (t *traits) handled(size int) bool {
	return t != nil && (t.tp != nil || t.waits() && size <= someip.MaxUDPDatagram)
}

// wiringOf returns the wiring of an instance, new. The first that collects messages
// starts what has them leave. n.mu is held, and n is not closed.
func (n *Network) wiringOf(key InstanceKey) (*wiring, error) {
	w, err := n.compile(n.deploymentOf(key), key)
	if err == nil && w.collects() && !n.trains.used.Swap(true) {
		n.work.Go(n.trains.run)
	}
	return w, err
}

// collects reports whether messages wait for others that are ready.
func (w *wiring) collects() bool {
	for _, part := range []map[uint16]*traits{w.requests, w.responses, w.events} {
		for _, t := range part {
			if t.collect {
				return true
			}
		}
	}
	return false
}

// deploymentOf returns what was deployed for an instance. n.mu is held.
func (n *Network) deploymentOf(key InstanceKey) Deployment {
	if d, ok := n.deployments[key]; ok {
		return d
	}
	key.Instance = someip.AnyInstance
	return n.deployments[key]
}

func (n *Network) compile(d Deployment, key InstanceKey) (*wiring, error) {
	w := &wiring{tls: d.TLS, dtls: d.DTLS}
	for _, part := range []struct {
		from map[uint16]MessageConfig
		to   *map[uint16]*traits
	}{{d.Requests, &w.requests}, {d.Responses, &w.responses}, {d.Events, &w.events}} {
		for id, mc := range part.from {
			t, err := n.compileMessage(mc, key)
			if err != nil {
				return nil, fmt.Errorf("runtime: deployment of %v: %#04x: %w", key, id, err)
			}
			if *part.to == nil {
				*part.to = make(map[uint16]*traits, len(part.from))
			}
			(*part.to)[id] = t
		}
	}
	return w, nil
}

func (n *Network) compileMessage(mc MessageConfig, key InstanceKey) (*traits, error) {
	t := &traits{tp: mc.TP, maxPayload: n.maxPayload(), debounce: mc.Debounce, retention: mc.Retention, collect: mc.Collect}
	if mc.Debounce < 0 || mc.Retention < 0 {
		return nil, errors.New("negative time")
	}
	if mc.Collect {
		t.retention = orDefault(mc.Retention, DefaultCollect)
	}
	if mc.MaxPayload > 0 {
		t.maxPayload = min(t.maxPayload, mc.MaxPayload)
	}
	if mc.TP != nil {
		if err := mc.TP.Validate(); err != nil {
			return nil, err
		}
	}
	if mc.E2E != nil {
		cfg, err := mc.E2E.compile(key.Instance)
		if err != nil {
			return nil, err
		}
		t.guard = newGuard(cfg, mc.E2E.Drop)
	}
	return t, nil
}

// layer is what protects its ports.
func (w *wiring) layer(reliable bool) any {
	switch {
	case reliable && w.tls != nil:
		return w.tls
	case !reliable && w.dtls != nil:
		return w.dtls
	default:
		return nil
	}
}

// limitOf is the longest payload that a message may have (UDP-2, TCP-4).
func (n *Network) limitOf(t *traits, reliable bool) int {
	limit := someip.MaxUDPPayload
	switch {
	case reliable:
		limit = n.maxPayload()
	case t != nil && t.tp != nil:
		limit = max(limit, t.maxPayload)
	}
	if t != nil && t.guard != nil {
		limit -= t.guard.size
	}
	return limit
}

// reset forgets what was received before: the sender is new.
func (w *wiring) reset() {
	for _, part := range []map[uint16]*traits{w.responses, w.events} {
		for _, t := range part {
			if t.guard != nil {
				t.guard.reset()
			}
		}
	}
}
