package sd

import (
	"encoding/binary"
	"net/netip"
)

// OptionType is the type of an option.
type OptionType uint8

// Option types. Others, such as the private ones of a stack, are kept as raw
// bytes and ignored.
const (
	OptionConfiguration  OptionType = 0x01
	OptionLoadBalancing  OptionType = 0x02
	OptionIPv4Endpoint   OptionType = 0x04
	OptionIPv6Endpoint   OptionType = 0x06
	OptionIPv4Multicast  OptionType = 0x14
	OptionIPv6Multicast  OptionType = 0x16
	OptionIPv4SDEndpoint OptionType = 0x24
	OptionIPv6SDEndpoint OptionType = 0x26
)

const optionHeader = 4 // Length, Type and the reserved byte that Length counts

// Option is one option of a message. Which fields hold depends on the type.
//
//	+-------------------------------+---------------+---------------+
//	|    Length (from Reserved on)  |     Type      |   Reserved    |
//	+-------------------------------+---------------+---------------+
type Option struct {
	Type     OptionType
	Reserved uint8 // 0 in what we send

	Endpoint netip.AddrPort // endpoint, multicast and SD endpoint options; without zone
	Proto    Proto          // of the same

	Priority, Weight uint16 // load balancing: lower priority is preferred

	Data []byte // configuration and unknown options: what follows the reserved byte
}

// parseOption reads the option at the start of b and returns its bytes. The
// whole option has Length+3 of them (case 38).
func parseOption(b []byte) (o Option, size int, err error) {
	if len(b) < optionHeader-1 {
		return o, 0, ErrOption
	}
	length := int(binary.BigEndian.Uint16(b))
	size = length + optionHeader - 1
	if size > len(b) {
		return o, 0, ErrOption
	}
	o.Type = OptionType(b[2])
	body := b[optionHeader-1 : size : size]
	if length > 0 {
		o.Reserved, body = body[0], body[1:]
	}
	ok := true
	switch o.Type {
	case OptionConfiguration:
		ok = o.parseConfiguration(body)
	case OptionLoadBalancing:
		ok = o.parseLoadBalancing(body)
	case OptionIPv4Endpoint, OptionIPv4Multicast, OptionIPv4SDEndpoint:
		ok = o.parseIPv4(body)
	case OptionIPv6Endpoint, OptionIPv6Multicast, OptionIPv6SDEndpoint:
		ok = o.parseIPv6(body)
	default:
		o.Data = body
	}
	if !ok {
		return o, 0, ErrOption
	}
	return o, size, nil
}

func (o *Option) encodable() bool {
	switch o.Type {
	case OptionLoadBalancing:
		return true
	case OptionIPv4Endpoint, OptionIPv4Multicast, OptionIPv4SDEndpoint:
		return o.Endpoint.Addr().Is4()
	case OptionIPv6Endpoint, OptionIPv6Multicast, OptionIPv6SDEndpoint:
		return o.Endpoint.Addr().Is6()
	default:
		return len(o.Data) < 0xFFFF
	}
}

func (o *Option) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(o.size()-optionHeader+1))
	b = append(b, byte(o.Type), o.Reserved)
	switch o.Type {
	case OptionLoadBalancing:
		return o.appendLoadBalancing(b)
	case OptionIPv4Endpoint, OptionIPv4Multicast, OptionIPv4SDEndpoint,
		OptionIPv6Endpoint, OptionIPv6Multicast, OptionIPv6SDEndpoint:
		return o.appendEndpoint(b)
	default:
		return append(b, o.Data...)
	}
}

// size returns the bytes of the whole option.
func (o *Option) size() int {
	switch o.Type {
	case OptionLoadBalancing:
		return optionHeader + loadBalancingSize
	case OptionIPv4Endpoint, OptionIPv4Multicast, OptionIPv4SDEndpoint:
		return optionHeader + ipv4Size
	case OptionIPv6Endpoint, OptionIPv6Multicast, OptionIPv6SDEndpoint:
		return optionHeader + ipv6Size
	default:
		return optionHeader + len(o.Data)
	}
}

func (o *Option) equal(p *Option) bool {
	return o.Type == p.Type && o.Reserved == p.Reserved && o.Endpoint == p.Endpoint && o.Proto == p.Proto &&
		o.Priority == p.Priority && o.Weight == p.Weight && string(o.Data) == string(p.Data)
}
