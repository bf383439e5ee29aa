package runtime

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/sd"
)

// discovery is the input and output of the machine of service discovery: two
// sockets at the SD port that share no state, and its timer.
type discovery struct {
	unicast, multicast endpoint.PacketSocket
	wake               chan struct{} // the next deadline may be earlier than before
	stop               chan struct{}
	armed              time.Time // when the timer will look again; guarded by n.mu
	shared             ownAddress
}

var never = time.Unix(1<<40, 0)

func (n *Network) newMachine() (*sd.Machine, error) {
	nc, c := n.cfg, sd.DefaultConfig()
	c.AcceptMinor = n.acceptsMinor
	c.Address = n.own(0).Addr()
	if !nc.AnySubnet {
		c.Subnet = nc.Address.Masked()
	}
	c.Group, c.Port = nc.SD.Group, nc.SD.Port
	c.InitialDelayMin, c.InitialDelayMax = nc.SD.InitialDelayMin, nc.SD.InitialDelayMax
	c.RepetitionsBaseDelay, c.RepetitionsMax = nc.SD.RepetitionsBaseDelay, nc.SD.RepetitionsMax
	c.CyclicOfferDelay = nc.SD.CyclicOfferDelay
	c.SubscribeDelayMin, c.SubscribeDelayMax = nc.SD.SubscribeDelayMin, nc.SD.SubscribeDelayMax
	c.TTLFactor, c.AnySourcePort, c.InitialDataControl = nc.SD.TTLFactor, nc.SD.AnySourcePort, nc.SD.InitialDataControl
	c.SubscriptionTTLFactor = nc.SD.SubscriptionTTLFactor
	c.OfferTTLFactors, c.SubscriptionTTLFactors = nc.SD.OfferTTLFactors, nc.SD.SubscriptionTTLFactors
	c.MulticastAnswers = nc.SD.MulticastAnswers
	if nc.SD.MaxSubscribers > 0 {
		c.Limits.SubscribersPerGroup = nc.SD.MaxSubscribers
	}
	c.RequestResponseDelayMin, c.RequestResponseDelayMax = nc.SD.RequestResponseMin, nc.SD.RequestResponseMax
	c.TTL, c.SubscribeTTL = uint32(nc.SD.TTL/time.Second), uint32(nc.SD.SubscribeTTL/time.Second)
	return sd.New(c, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
}

func (n *Network) openDiscovery() (err error) {
	d := &n.discovery
	unicast := n.udpConfig(n.cfg.SD.Port)
	unicast.Shared = true // vsomeip has the port on all addresses (10.1)
	if d.unicast, err = n.listenUDP(unicast); err != nil {
		var used *endpoint.InUseError
		if errors.As(err, &used) { // RB-9, 10.1
			return fmt.Errorf("another SOME/IP stack has this address: %w", err)
		}
		return err
	}
	group := netip.AddrPortFrom(n.cfg.SD.Group, n.cfg.SD.Port)
	if d.multicast, err = n.listenMulticast(group); err != nil {
		d.unicast.Close()
		return err
	}
	d.wake, d.stop = make(chan struct{}, 1), make(chan struct{})
	return nil
}

func (n *Network) startDiscovery() {
	d := &n.discovery
	d.unicast.Serve(func(from netip.AddrPort, b []byte) { n.receiveDiscovery(from, false, b) })
	d.multicast.Serve(func(from netip.AddrPort, b []byte) { n.receiveDiscovery(from, true, b) })
	n.work.Go(n.keepTime)
}

func (n *Network) closeDiscovery() error {
	d := &n.discovery
	close(d.stop)
	err := d.multicast.Close()
	if uerr := d.unicast.Close(); err == nil {
		err = uerr
	}
	return err
}

// step lets the machine act, with n.mu held, and carries out what follows.
func (n *Network) step(f func(m *sd.Machine) []sd.Action) {
	n.mu.Lock()
	if !n.closed {
		n.perform(f(n.machine))
	}
	n.mu.Unlock()
	n.callbacks.run()
}

func (n *Network) receiveDiscovery(from netip.AddrPort, multicast bool, b []byte) {
	if multicast {
		n.checkEcho(from, b)
	}
	n.step(func(m *sd.Machine) []sd.Action { return m.Receive(n.now(), from, multicast, b) })
}

// A process that was held up for longer than stalled reads for a while what came
// meanwhile, before it lets anything expire.
const (
	stalled = 200 * time.Millisecond
	respite = 50 * time.Millisecond
)

// keepTime ticks the machine when something is due.
func (n *Network) keepTime() {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		next, due := n.arm()
		t.Stop()
		if due {
			t.Reset(time.Until(next))
		}
		select {
		case <-t.C:
			if due && time.Since(next) > stalled {
				t.Reset(respite)
				select {
				case <-t.C:
				case <-n.discovery.stop:
					return
				}
			}
			n.segments.tick(n.now())
			n.step(func(m *sd.Machine) []sd.Action { return m.Tick(n.now()) })
		case <-n.discovery.wake:
		case <-n.discovery.stop:
			return
		}
	}
}

// arm returns when discovery or reassembly has something to do, and notes that the
// timer will be set for then.
func (n *Network) arm() (next time.Time, due bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	next, due = n.machine.Next()
	if at, ok := n.segments.next(); ok && (!due || at.Before(next)) {
		next, due = at, true
	}
	n.discovery.armed = next
	if !due {
		n.discovery.armed = never
	}
	return next, due
}

// wake has the timer look for the next deadline.
func (n *Network) wake() {
	select {
	case n.discovery.wake <- struct{}{}:
	default:
	}
}

// perform carries out actions, in order, and has the timer look for the next
// deadline. n.mu is held.
func (n *Network) perform(actions []sd.Action) {
	for _, a := range actions {
		n.act(a)
	}
	if next, due := n.machine.Next(); due && next.Before(n.discovery.armed) {
		n.wake() // not for what is renewed all the time, and only ends later
	}
}

func (n *Network) act(a sd.Action) {
	switch a := a.(type) {
	case sd.Send:
		if a.To.Addr().IsMulticast() {
			n.discovery.shared.echoes.Sent(a.Data)
		}
		if err := n.discovery.unicast.Send(a.To, a.Data); err != nil {
			n.stats.sendErrors.Add(1)
			n.log.Warn("sd.send", "to", a.To, "error", err)
		}
	case sd.Available:
		if n.statics[a.Key] == nil {
			n.available(a)
		}
	case sd.Unavailable:
		if n.statics[a.Key] == nil {
			n.unavailable(a.Key, reasons[a.Reason])
		}
	case sd.OfferConflict:
		n.conflict(a)
	case sd.OwnAddressClaimed: // RB-9
		n.log.Warn("sd.own_address", "peer", a.Peer, "claimed", a.Claimed, "instance", a.Key,
			"reason", "another host or stack has our address, or the peer names it by mistake: it is ignored")
	case sd.NeedConnection:
		n.needConnection(a)
	case sd.SubscriptionAcked:
		n.subscriptionChanged(a.Key, SubscriptionActive, "")
	case sd.SubscriptionNacked:
		n.subscriptionChanged(a.Key, SubscriptionRefused, ReasonRefused)
	case sd.SubscriptionMismatch:
		n.subscriptionChanged(a.Key, SubscriptionWaiting, ReasonMismatch)
	case sd.SubscriptionLost:
		n.subscriptionChanged(a.Key, SubscriptionWaiting, reasons[a.Reason])
	case sd.SubscriberAdded:
		n.subscriberAdded(a)
	case sd.SubscribeAsked:
		n.subscribeAsked(a)
	case sd.SubscriberRemoved:
		n.subscriberRemoved(a)
	case sd.PeerRebooted:
		n.peerRebooted(n.at(a.Peer).Addr())
	case sd.JoinMulticast:
		n.join(a.Group)
	case sd.LeaveMulticast:
		n.groups.Leave(a.Group)
	case sd.RejoinDiscovery:
		n.rejoin()
	}
}

// join receives the events of a multicast eventgroup (SUB-14).
func (n *Network) join(group netip.AddrPort) {
	if err := n.groups.Join(group); err != nil {
		n.log.Warn("events.join", "group", group, "error", err)
	}
}

// rejoin takes up multicast anew, after the interface was away or where switches may
// have forgotten us (9.6, case 70). n.mu is held.
func (n *Network) rejoin() {
	errs := []error{n.groups.Rejoin()}
	for _, s := range n.systemSockets() {
		errs = append(errs, s.Rejoin())
	}
	if err := errors.Join(errs...); err != nil {
		n.log.Warn("multicast.rejoin", "error", err)
	}
}

// presence follows the own address: without it nothing is known of others, and when
// it is back everything begins anew (9.6).
func (n *Network) presence(p endpoint.Presence) {
	n.step(func(m *sd.Machine) []sd.Action {
		if p != endpoint.Up {
			n.log.Warn("network.down", "address", n.cfg.Address, "presence", p)
			return m.LinkDown(n.now())
		}
		n.log.Info("network.up", "address", n.cfg.Address)
		n.rejoin()
		return m.LinkUp(n.now())
	})
}
