package lossy

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"carisma.dev/gateway/someip/sd"
)

// Side is one of the two networks: its hosts, and where they do service discovery.
type Side struct {
	Subnet netip.Prefix // IPv4, on the loopback interface
	Group  netip.Addr
	Port   uint16
}

func (s Side) validate() error {
	if !s.Subnet.Addr().Is4() || !s.Subnet.Addr().IsLoopback() || !s.Group.Is4() || !s.Group.IsMulticast() || s.Port == 0 {
		return fmt.Errorf("lossy: a side needs an IPv4 subnet of the loopback interface, a group and a port: %+v", s)
	}
	return nil
}

// across returns what stands on the other side for an endpoint of this one: the
// same host of the other subnet; the port of service discovery is that of the
// other side, any other stays.
func (s Side) across(other Side, at netip.AddrPort) netip.AddrPort {
	if !s.Subnet.Contains(at.Addr()) {
		return at
	}
	hosts := ^uint32(0) >> s.Subnet.Bits()
	word := func(a netip.Addr) uint32 { b := a.As4(); return binary.BigEndian.Uint32(b[:]) }
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], word(other.Subnet.Masked().Addr())|word(at.Addr())&hosts)
	port := at.Port()
	if port == s.Port {
		port = other.Port
	}
	return netip.AddrPortFrom(netip.AddrFrom4(b), port)
}

// translate rewrites the endpoints in a datagram of service discovery, and
// returns those that others will now send to. What it cannot parse it leaves.
func (s Side) translate(other Side, b []byte) (out []byte, announced []netip.AddrPort) {
	for len(b) > 0 {
		m, rest, err := sd.Parse(b)
		if err != nil {
			break
		}
		for i := range m.Options {
			o := &m.Options[i]
			if (o.IsEndpoint() || o.IsSDEndpoint()) && s.Subnet.Contains(o.Endpoint.Addr()) {
				o.Endpoint = s.across(other, o.Endpoint)
				if o.Proto == sd.UDP {
					announced = append(announced, o.Endpoint)
				}
			}
		}
		next, err := m.Append(out)
		if err != nil {
			break
		}
		out, b = next, rest
	}
	return append(out, b...), announced
}
