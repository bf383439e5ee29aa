package vsomeip

import "time"

func (d *decoder) config(n *node) *Config {
	c := &Config{
		Unicast: d.peer(n.member("unicast")), Netmask: d.bits(n.member("netmask")), Device: d.text(n.member("device")),
		Diagnosis: uint16(d.number(n.member("diagnosis"), 0, 0xFFFF)), DiagnosisMask: 0xFF00,
		Discovery:            d.discovery(n.member("service-discovery")),
		MaxPayloadReliable:   d.size(n.member("max-payload-size-reliable")),
		MaxPayloadUnreliable: d.size(n.member("max-payload-size-unreliable")),
		TCPConnectTime:       d.millis(n.member("tcp-connect-time-max")),
		TCPRestarts:          d.size(n.member("tcp-restart-aborts-max")),
		UDPReceiveBuffer:     d.size(n.member("udp-receive-buffer-size")),
		Shutdown:             d.millis(n.member("shutdown_timeout")),
	}
	if mask := n.member("diagnosis_mask"); mask != nil {
		c.DiagnosisMask = d.id(mask)
	}
	d.each(n.member("applications"), func(n *node) {
		if d.is(n, object) {
			c.Applications = append(c.Applications, Application{
				Name: d.text(n.member("name")), ID: d.id(n.member("id")), Sessions: d.boolean(n.member("has_session_handling"), true),
			})
		}
	})
	d.services(c, n)
	d.each(n.member("clients"), func(n *node) {
		if d.is(n, object) {
			c.Clients = append(c.Clients, d.client(n))
		}
	})
	d.each(n.member("payload-sizes"), func(n *node) {
		if !d.is(n, object) {
			return
		}
		at := d.addr(n.member("unicast"))
		d.each(n.member("ports"), func(n *node) {
			if d.is(n, object) {
				c.PayloadSizes = append(c.PayloadSizes, PayloadSize{at, d.port(n.member("port")), d.size(n.member("max-payload-size"))})
			}
		})
	})
	if t := n.member("npdu-default-timings"); t != nil && d.is(t, object) {
		c.Timings = d.defaultTimings(t)
	}
	d.each(n.member("debounce"), func(n *node) {
		if d.is(n, object) {
			c.Filters = append(c.Filters, d.filter(n))
		}
	})
	d.protection(c, n.member("e2e"))
	d.selective(c, n.member("supports_selective_broadcasts"))
	return c
}

// defaultTimings reads four times; vsomeip keeps those of requests and responses
// apart, and the larger of each holds here.
func (d *decoder) defaultTimings(n *node) *Timings {
	longer := func(kind string) time.Duration {
		return max(d.millis(n.member(kind+"-request")), d.millis(n.member(kind+"-response")))
	}
	return &Timings{Debounce: longer("debounce-time"), Retention: longer("max-retention-time")}
}

func (d *decoder) client(n *node) Client {
	c := Client{Pos: n.pos, Service: d.id(n.member("service")), Instance: d.id(n.member("instance"))}
	d.each(n.member("reliable"), func(n *node) { c.TCP = append(c.TCP, d.port(n)) })
	d.each(n.member("unreliable"), func(n *node) { c.UDP = append(c.UDP, d.port(n)) })
	for key, r := range map[string]*Range{
		"reliable_client_ports": &c.TCPPorts, "reliable_remote_ports": &c.TCPRemote,
		"unreliable_client_ports": &c.UDPPorts, "unreliable_remote_ports": &c.UDPRemote,
	} {
		*r = d.ports(n.member(key))
	}
	return c
}

func (d *decoder) ports(n *node) Range {
	if !d.is(n, object) {
		return Range{}
	}
	r := Range{d.port(n.member("first")), d.port(n.member("last"))}
	if r.Last < r.First {
		d.r.add(n.pos, "", "ports %d to %d are no range", r.First, r.Last)
	}
	return r
}

func (d *decoder) filter(n *node) Filter {
	f := Filter{Service: d.id(n.member("service")), Instance: d.id(n.member("instance"))}
	d.each(n.member("events"), func(n *node) {
		if !d.is(n, object) {
			return
		}
		e := EventFilter{Event: d.id(n.member("event"))}
		if on := n.member("on_change"); on != nil {
			e.OnChange = d.boolean(on, false)
		}
		if reset := n.member("on_change_resets_interval"); reset != nil {
			e.ChangeResetsInterval = d.boolean(reset, false)
		}
		d.each(n.member("ignore"), func(n *node) {
			if e.Ignore == nil {
				e.Ignore = map[int]byte{}
			}
			index, mask := d.ignored(n)
			e.Ignore[index] = mask
		})
		if every := n.member("interval"); every != nil && every.text != "never" {
			e.Interval = d.millis(every)
		}
		f.Events = append(f.Events, e)
	})
	return f
}

// ignored reads the index of a byte, and the bits of it that do not count: all without
// a mask.
func (d *decoder) ignored(n *node) (index int, mask byte) {
	mask = 0xFF
	if n.kind == object {
		if m := n.member("mask"); m != nil {
			mask = byte(d.number(m, 0, 0xFF))
		}
		n = n.member("index")
	}
	if n != nil {
		index = int(d.number(n, 0, maxBytes))
	}
	return index, mask
}

// selective takes a list of addresses, or an object with members of that name.
func (d *decoder) selective(c *Config, n *node) {
	if n != nil && n.kind == object {
		for _, m := range n.members {
			c.Selective = append(c.Selective, d.addr(m.value))
		}
		return
	}
	d.each(n, func(n *node) { c.Selective = append(c.Selective, d.addr(n)) })
}

func (d *decoder) protection(c *Config, n *node) {
	if !d.is(n, object) {
		return
	}
	c.E2E = d.boolean(n.member("e2e_enabled"), false)
	d.each(n.member("protected"), func(n *node) {
		if !d.is(n, object) {
			return
		}
		p := Protection{
			Pos: n.pos, Service: d.id(n.member("service_id")), Event: d.id(n.member("event_id")),
			Profile: d.one(n.member("profile"), "P01", "P04", "P05", "P07", "CRC8", "CRC32", "CSTM"),
			DataID:  d.size(n.member("data_id")), DataIDMode: uint8(d.number(n.member("data_id_mode"), 0, 3)),
			CRCOffset: d.size(n.member("crc_offset")), CounterOffset: d.size(n.member("counter_offset")),
			NibbleOffset: d.size(n.member("data_id_nibble_offset")), DataLength: d.size(n.member("data_length")),
			MinDataLength: d.size(n.member("min_data_length")), MaxDataLength: d.size(n.member("max_data_length")),
			MaxDelta: d.size(n.member("max_delta_counter")),
		}
		variant := d.one(n.member("variant"), "protector", "checker", "both")
		p.Protector, p.Checker = variant != "checker", variant != "protector"
		c.Protected = append(c.Protected, p)
	})
}
