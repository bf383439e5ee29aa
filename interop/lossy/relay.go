// Package lossy joins two SOME/IP networks on the loopback interface by a relay
// in user space that loses, delays, doubles, reorders and corrupts datagrams at
// given rates: for kernels without netem, and repeatable by a seed.
//
// The two networks do not hear each other. For each host of the one the relay
// has sockets on the other, at the same host number and port, and rewrites the
// endpoints in service discovery accordingly: so neither stack sees anything but
// a bad network. It carries UDP; TCP repairs losses by itself.
package lossy

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"carisma.dev/gateway/someip/endpoint"
)

// maxWaiting bounds the datagrams that are delayed; more are dropped.
const maxWaiting = 1 << 14

// maxPorts bounds the sockets.
const maxPorts = 1024

// Relay carries datagrams between two sides until it is closed. Its methods are
// safe for concurrent use.
type Relay struct {
	sides [2]Side

	mu      sync.Mutex // guards what follows
	faults  Faults
	flows   [2][kinds]flow
	ports   map[netip.AddrPort]*endpoint.UDP // by the endpoint that they stand for, as its side's other sees it
	groups  []*endpoint.UDP
	waiting sync.WaitGroup
	closed  bool
}

// flow is what goes one way and is of one kind.
type flow struct {
	fates  fates
	counts Counts
}

// Start starts a relay that passes everything, with [Relay.SetFaults] to change that.
func Start(a, b Side, seed uint64) (*Relay, error) {
	if err := errors.Join(a.validate(), b.validate()); err != nil {
		return nil, err
	}
	if a.Subnet.Overlaps(b.Subnet) {
		return nil, fmt.Errorf("lossy: the sides %v and %v overlap", a.Subnet, b.Subnet)
	}
	r := &Relay{sides: [2]Side{a, b}, ports: map[netip.AddrPort]*endpoint.UDP{}}
	for side := range r.flows {
		for kind := range r.flows[side] {
			r.flows[side][kind].fates = newFates(seed, uint64(side*int(kinds)+kind))
		}
	}
	for i, s := range r.sides {
		group := netip.AddrPortFrom(s.Group, s.Port)
		// The relay is no host: the first address of a subnet only says which interface it is.
		own := netip.AddrPortFrom(s.Subnet.Masked().Addr().Next(), 0)
		u, err := endpoint.ListenMulticast(group, endpoint.UDPConfig{Local: own, ReceiveBuffer: receiveBuffer})
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		other := r.sides[1-i]
		to := netip.AddrPortFrom(other.Group, other.Port)
		u.Serve(func(from netip.AddrPort, data []byte) { r.carry(i, MulticastSD, from, to, data) })
		r.groups = append(r.groups, u)
	}
	return r, nil
}

// receiveBuffer is asked for, so that the relay loses what it means to lose only.
const receiveBuffer = 4 << 20

// SetFaults changes what is done to datagrams from now on.
func (r *Relay) SetFaults(f Faults) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = f
}

// Stats returns the counters.
func (r *Relay) Stats() (s Stats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for side := range r.flows {
		for kind := range r.flows[side] {
			s.Flows[side][kind] = r.flows[side][kind].counts
		}
	}
	for _, u := range r.ports {
		s.Overrun += u.Stats().Dropped
	}
	for _, u := range r.groups {
		s.Overrun += u.Stats().Dropped
	}
	return s
}

// Close delivers what is delayed and ends.
func (r *Relay) Close() error {
	r.mu.Lock()
	r.closed = true
	sockets := r.groups
	for _, u := range r.ports {
		sockets = append(sockets, u)
	}
	r.mu.Unlock()
	r.waiting.Wait()
	var errs []error
	for _, u := range sockets {
		errs = append(errs, u.Close())
	}
	return errors.Join(errs...)
}

// carry takes a datagram that a host of a side sent to what is "to" on the other.
func (r *Relay) carry(side int, kind Kind, from, to netip.AddrPort, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.ports[from] != nil { // what the relay itself sent to the group
		return
	}
	here, there := r.sides[side], r.sides[1-side]
	f, rates := &r.flows[side][kind], r.faults.Data
	f.counts.Received++
	if kind == Data {
		data = append([]byte(nil), data...)
	} else {
		rates = r.faults.SD
		var announced []netip.AddrPort
		data, announced = here.translate(there, data)
		for _, at := range announced {
			// Where this fails nothing can be sent to, which the sender's counters show.
			_, _ = r.port(1-side, at)
		}
	}
	fate := f.fates.next(rates)
	if fate.drop {
		f.counts.Dropped++
		return
	}
	out, err := r.port(1-side, here.across(there, from))
	if err != nil {
		f.counts.Failed++
		return
	}
	if fate.corrupt && len(data) > 0 {
		bit := fate.bit % uint64(8*len(data))
		data[bit/8] ^= 1 << (bit % 8)
		f.counts.Corrupted++
	}
	f.counts.HeldBack += uint64(fate.held)
	f.counts.Duplicated += uint64(len(fate.delays) - 1)
	for _, delay := range fate.delays {
		r.deliver(f, out, to, data, delay)
	}
}

// deliver sends a datagram, after a delay. It is called with r.mu held.
func (r *Relay) deliver(f *flow, out *endpoint.UDP, to netip.AddrPort, data []byte, delay time.Duration) {
	switch {
	case delay == 0:
		f.sent(out.Send(to, data))
	case f.counts.Waiting == maxWaiting:
		f.counts.Dropped++
	default:
		f.counts.Waiting++
		r.waiting.Add(1)
		time.AfterFunc(delay, func() {
			defer r.waiting.Done()
			err := out.Send(to, data)
			r.mu.Lock()
			defer r.mu.Unlock()
			f.counts.Waiting--
			f.sent(err)
		})
	}
}

func (f *flow) sent(err error) {
	if err != nil {
		f.counts.Failed++
	} else {
		f.counts.Forwarded++
	}
}

// port returns the socket on a side that stands for an endpoint of the other.
// It is called with r.mu held.
func (r *Relay) port(side int, at netip.AddrPort) (*endpoint.UDP, error) {
	if u := r.ports[at]; u != nil {
		return u, nil
	}
	if len(r.ports) == maxPorts {
		return nil, fmt.Errorf("lossy: more than %d endpoints", maxPorts)
	}
	here, there := r.sides[side], r.sides[1-side]
	if !here.Subnet.Contains(at.Addr()) {
		return nil, fmt.Errorf("lossy: %v is not on %v", at, here.Subnet)
	}
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: at, ReceiveBuffer: receiveBuffer})
	if err != nil {
		return nil, err
	}
	kind, to := Data, here.across(there, at)
	if at.Port() == here.Port {
		kind = UnicastSD
	}
	u.Serve(func(from netip.AddrPort, data []byte) { r.carry(side, kind, from, to, data) })
	r.ports[at] = u
	return u, nil
}
