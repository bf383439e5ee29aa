package vsomeip

func (d *decoder) discovery(n *node) Discovery {
	s := Discovery{Enable: true, Set: map[string]bool{}}
	if !d.is(n, object) {
		return s
	}
	for _, m := range n.members {
		s.Set[m.key] = true
	}
	s.Enable = d.boolean(n.member("enable"), true)
	s.Group = d.addr(n.member("multicast"))
	if at := n.member("multicast"); s.Group.IsValid() && !s.Group.IsMulticast() {
		d.r.add(at.pos, "224.0.0.0 to 239.255.255.255, ff00::/8", "%v is no multicast address", s.Group)
	}
	s.Port = d.port(n.member("port"))
	s.Protocol = d.one(n.member("protocol"), "udp", "tcp")
	s.InitialDelayMin, s.InitialDelayMax = d.millis(n.member("initial_delay_min")), d.millis(n.member("initial_delay_max"))
	s.RepetitionsBaseDelay = d.millis(n.member("repetitions_base_delay"))
	s.RepetitionsMax = uint8(d.number(n.member("repetitions_max"), 0, 0xFF))
	s.CyclicOfferDelay = d.millis(n.member("cyclic_offer_delay"))
	s.RequestResponseDelay = d.millis(n.member("request_response_delay"))
	s.TTL = uint32(d.number(n.member("ttl"), 1, 0xFFFFFF)) // 0 would stop what it offers
	s.OfferDebounce = d.millis(n.member("offer_debounce_time"))
	s.FindDebounce = d.millis(n.member("find_debounce_time"))
	s.MaxRemoteSubscribers = uint8(d.number(n.member("max_remote_subscribers"), 0, 0xFF))
	s.OfferTTLFactors = d.factors(n.member("ttl_factor_offers"))
	s.SubscriptionTTLFactors = d.factors(n.member("ttl_factor_subscriptions"))
	if lo, hi := n.member("initial_delay_min"), s.InitialDelayMax; lo != nil && s.Set["initial_delay_max"] && s.InitialDelayMin > hi {
		d.r.add(lo.pos, "", "initial_delay_min is above initial_delay_max")
	}
	return s
}

func (d *decoder) factors(n *node) (all []TTLFactor) {
	d.each(n, func(n *node) {
		if d.is(n, object) {
			all = append(all, TTLFactor{d.id(n.member("service")), d.id(n.member("instance")), d.size(n.member("ttl_factor"))})
		}
	})
	return all
}
