package sd

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// Proto is the transport protocol of an endpoint, by its IP protocol number.
type Proto uint8

// Transport protocols.
const (
	TCP Proto = 0x06
	UDP Proto = 0x11
)

// String returns the name of the protocol.
func (p Proto) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	default:
		return fmt.Sprintf("0x%02x", uint8(p))
	}
}

// Sizes of what follows the reserved byte: address, reserved, protocol, port.
const (
	ipv4Size = 4 + endpointTail
	ipv6Size = 16 + endpointTail

	endpointTail = 1 + 1 + 2
)

// EndpointOption returns the option that says where a service or a subscriber
// is reached.
func EndpointOption(at netip.AddrPort, proto Proto) Option {
	return addressOption(OptionIPv4Endpoint, at, proto)
}

// MulticastOption returns the option that says on which group events of an
// eventgroup are sent.
func MulticastOption(group netip.AddrPort) Option {
	return addressOption(OptionIPv4Multicast, group, UDP)
}

// SDEndpointOption returns the option that replaces the source address of a
// message. It must be the first of the message, and no entry refers to it.
func SDEndpointOption(at netip.AddrPort) Option {
	return addressOption(OptionIPv4SDEndpoint, at, UDP)
}

// IsEndpoint reports whether o is an endpoint option.
func (o *Option) IsEndpoint() bool {
	return o.Type == OptionIPv4Endpoint || o.Type == OptionIPv6Endpoint
}

// IsMulticast reports whether o is a multicast option.
func (o *Option) IsMulticast() bool {
	return o.Type == OptionIPv4Multicast || o.Type == OptionIPv6Multicast
}

// IsSDEndpoint reports whether o is an SD endpoint option.
func (o *Option) IsSDEndpoint() bool {
	return o.Type == OptionIPv4SDEndpoint || o.Type == OptionIPv6SDEndpoint
}

// addressOption returns an option of the type for IPv4, or of the one for IPv6,
// which is always two above it.
func addressOption(v4 OptionType, at netip.AddrPort, proto Proto) Option {
	at = normal(at)
	if at.Addr().Is6() {
		v4 += OptionIPv6Endpoint - OptionIPv4Endpoint
	}
	return Option{Type: v4, Endpoint: at, Proto: proto}
}

// parseIPv4 demands the exact size: a Length of 8 comes from a stack that forgot
// the reserved byte, and then its other bytes are shifted too (case 41).
func (o *Option) parseIPv4(b []byte) bool {
	if len(b) != ipv4Size {
		return false
	}
	o.parseEndpoint(netip.AddrFrom4([4]byte(b)), b[4:])
	return true
}

func (o *Option) parseIPv6(b []byte) bool { // case 43
	if len(b) != ipv6Size {
		return false
	}
	o.parseEndpoint(netip.AddrFrom16([16]byte(b)), b[16:])
	return true
}

func (o *Option) parseEndpoint(addr netip.Addr, tail []byte) {
	o.Proto = Proto(tail[1])
	o.Endpoint = netip.AddrPortFrom(addr, binary.BigEndian.Uint16(tail[2:]))
}

func (o *Option) appendEndpoint(b []byte) []byte {
	b = append(b, o.Endpoint.Addr().AsSlice()...)
	b = append(b, 0, byte(o.Proto))
	return binary.BigEndian.AppendUint16(b, o.Endpoint.Port())
}

// normal returns the form of an address in which it is a key: no zone, and an
// IPv4 address as such (case 20).
func normal(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(normalAddr(a.Addr()), a.Port())
}

func normalAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
