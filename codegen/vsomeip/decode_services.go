package vsomeip

import "net/netip"

// services reads services and those of servicegroups.
func (d *decoder) services(c *Config, n *node) {
	seen := map[[2]uint16]*node{}
	take := func(n *node) {
		if !d.is(n, object) {
			return
		}
		s := d.service(n, &c.Discovery)
		key := [2]uint16{s.Service, s.Instance}
		if first := seen[key]; first != nil && !s.Unicast.IsValid() {
			d.r.add(n.pos, "", "instance %04x.%04x is there twice, first at %v", s.Service, s.Instance, first.pos)
			return
		}
		seen[key] = n
		c.Services = append(c.Services, s)
	}
	d.each(n.member("services"), take)
	d.each(n.member("servicegroups"), func(n *node) {
		if d.is(n, object) {
			d.each(n.member("services"), take)
		}
	})
}

func (d *decoder) service(n *node, discovery *Discovery) Service {
	s := Service{Pos: n.pos, Service: d.id(n.member("service")), Instance: d.id(n.member("instance")), Protocol: d.text(n.member("protocol"))}
	for _, key := range []string{"service", "instance"} {
		if n.member(key) == nil {
			d.r.add(n.pos, "", "a service without %s", key)
		}
	}
	s.Unicast = d.peer(n.member("unicast"))
	if tcp := n.member("reliable"); tcp != nil && tcp.kind == object {
		s.TCP = d.port(tcp.member("port"))
		s.MagicCookies = d.boolean(tcp.member("enable-magic-cookies"), false) || d.boolean(tcp.member("magic-cookies"), false)
	} else {
		s.TCP = d.port(tcp)
	}
	s.UDP = d.port(n.member("unreliable"))
	if at := n.member("unreliable"); s.UDP != 0 && s.UDP == discovery.Port && discovery.Enable { // case 74
		d.r.add(at.pos, "", "port %d is that of service discovery", s.UDP)
	}
	s.Multicast = d.group(n.member("multicast"))
	d.each(n.member("events"), func(n *node) {
		if d.is(n, object) {
			s.Events = append(s.Events, Event{
				ID: d.id(n.member("event")), Field: d.boolean(n.member("is_field"), false),
				Reliable: d.boolean(n.member("is_reliable"), false), UpdateCycle: max(d.millis(n.member("update-cycle")), d.millis(n.member("cycle"))),
			})
		}
	})
	d.each(n.member("eventgroups"), func(n *node) {
		if d.is(n, object) {
			s.Eventgroups = append(s.Eventgroups, d.eventgroup(n))
		}
	})
	if tp := n.member("someip-tp"); d.is(tp, object) {
		s.ServiceToClient, s.ClientToService = d.segmented(tp.member("service-to-client")), d.segmented(tp.member("client-to-service"))
	}
	if times := n.member("debounce-times"); d.is(times, object) {
		s.Requests, s.Responses = d.timings(times.member("requests")), d.timings(times.member("responses"))
	}
	return s
}

// group reads a multicast address with a port, or without one.
func (d *decoder) group(n *node) netip.AddrPort {
	var at netip.AddrPort
	switch {
	case n == nil:
		return at
	case n.kind == object:
		at = netip.AddrPortFrom(d.addr(n.member("address")), d.port(n.member("port")))
	default:
		at = netip.AddrPortFrom(d.addr(n), 0)
	}
	if at.Addr().IsValid() && !at.Addr().IsMulticast() {
		d.r.add(n.pos, "224.0.0.0 to 239.255.255.255, ff00::/8", "%v is no multicast address", at.Addr())
	}
	return at
}

func (d *decoder) eventgroup(n *node) Eventgroup {
	g := Eventgroup{
		ID: d.id(n.member("eventgroup")), Multicast: d.group(n.member("multicast")),
		Threshold: uint8(d.number(n.member("threshold"), 0, 0xFF)),
	}
	d.boolean(n.member("is_multicast"), false)
	d.each(n.member("events"), func(n *node) { g.Events = append(g.Events, d.id(n)) })
	return g
}

func (d *decoder) segmented(n *node) (all []Segmented) {
	d.each(n, func(n *node) {
		if n.kind != object {
			all = append(all, Segmented{Method: d.id(n)})
			return
		}
		s := Segmented{
			Method: d.id(n.member("method")), MaxSegment: uint16(d.number(n.member("max-segment-length"), 16, 0xFFFF)),
			Separation: d.millis(n.member("separation-time")),
		}
		if s.MaxSegment%16 != 0 {
			d.r.add(n.member("max-segment-length").pos, "", "segments of %d bytes: no multiple of 16", s.MaxSegment)
		}
		all = append(all, s)
	})
	return all
}

func (d *decoder) timings(n *node) map[uint16]Timings {
	if !d.is(n, object) {
		return nil
	}
	all := make(map[uint16]Timings, len(n.members))
	for _, m := range n.members {
		if d.is(m.value, object) {
			id := d.id(&node{pos: m.pos, text: m.key})
			all[id] = Timings{d.millis(m.value.member("debounce-time")), d.millis(m.value.member("maximum-retention-time"))}
		}
	}
	return all
}
