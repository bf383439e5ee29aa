package capture

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// packet is what is in a frame for a transport. The bytes are views.
type packet struct {
	flow    Flow
	vlan    []uint16
	payload []byte
	// Of a TCP segment:
	seq           uint32
	syn, fin, rst bool
}

// decoder takes frames apart. Its layers are reused for each frame.
type decoder struct {
	ethernet layers.Ethernet
	vlan     tags
	sll      layers.LinuxSLL
	loop     layers.Loopback
	ip4      layers.IPv4
	ip6      layers.IPv6
	skip     layers.IPv6ExtensionSkipper
	udp      layers.UDP
	tcp      layers.TCP

	parsers map[gopacket.LayerType]*gopacket.DecodingLayerParser
	found   []gopacket.LayerType
}

// tags collects the ids of stacked VLAN tags, which decode into one layer.
type tags struct {
	layers.Dot1Q
	ids []uint16
}

func (t *tags) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	if err := t.Dot1Q.DecodeFromBytes(data, df); err != nil {
		return err
	}
	t.ids = append(t.ids, t.VLANIdentifier)
	return nil
}

func newDecoder() *decoder {
	d := &decoder{parsers: map[gopacket.LayerType]*gopacket.DecodingLayerParser{}}
	for _, first := range []gopacket.LayerType{
		layers.LayerTypeEthernet, layers.LayerTypeLinuxSLL, layers.LayerTypeLoopback, layers.LayerTypeIPv4, layers.LayerTypeIPv6,
	} {
		p := gopacket.NewDecodingLayerParser(first,
			&d.ethernet, &d.vlan, &d.sll, &d.loop, &d.ip4, &d.ip6, &d.skip, &d.udp, &d.tcp)
		p.IgnoreUnsupported = true
		d.parsers[first] = p
	}
	return d
}

// Link types that gopacket has no name for.
const (
	linkRawBSD layers.LinkType = 12
	linkPPI    layers.LinkType = 192
)

// verdict is what became of a frame.
type verdict uint8

const (
	decoded verdict = iota
	undecodable
	fragment
)

// decode finds the datagram or segment in a frame.
func (d *decoder) decode(link layers.LinkType, frame []byte) (packet, verdict) {
	if link == linkPPI {
		if link, frame = unwrapPPI(frame); frame == nil {
			return packet{}, undecodable
		}
	}
	var first gopacket.LayerType
	switch link {
	case layers.LinkTypeEthernet:
		first = layers.LayerTypeEthernet
	case layers.LinkTypeLinuxSLL:
		first = layers.LayerTypeLinuxSLL
	case layers.LinkTypeNull, layers.LinkTypeLoop:
		first = layers.LayerTypeLoopback
	case layers.LinkTypeRaw, linkRawBSD, layers.LinkTypeIPv4, layers.LinkTypeIPv6:
		first = layers.LayerTypeIPv4
		if len(frame) > 0 && frame[0]>>4 == 6 {
			first = layers.LayerTypeIPv6
		}
	default:
		return packet{}, undecodable
	}
	d.vlan.ids = d.vlan.ids[:0]
	if err := d.parsers[first].DecodeLayers(frame, &d.found); err != nil {
		return packet{}, undecodable
	}
	return d.packet()
}

func (d *decoder) packet() (p packet, v verdict) {
	var from, to net.IP
	v = undecodable
	for _, layer := range d.found {
		switch layer {
		case layers.LayerTypeIPv4:
			from, to = d.ip4.SrcIP, d.ip4.DstIP
			if d.ip4.Flags&layers.IPv4MoreFragments != 0 || d.ip4.FragOffset != 0 {
				v = fragment
			}
		case layers.LayerTypeIPv6:
			from, to = d.ip6.SrcIP, d.ip6.DstIP
			if d.ip6.NextHeader == layers.IPProtocolIPv6Fragment {
				v = fragment
			}
		case layers.LayerTypeUDP:
			v = decoded
			p = packet{flow: Flow{Transport: UDP}, payload: d.udp.Payload}
			p.flow.From, p.flow.To = end(from, uint16(d.udp.SrcPort)), end(to, uint16(d.udp.DstPort))
		case layers.LayerTypeTCP:
			v = decoded
			p = packet{
				flow: Flow{Transport: TCP}, payload: d.tcp.Payload,
				seq: d.tcp.Seq, syn: d.tcp.SYN, fin: d.tcp.FIN, rst: d.tcp.RST,
			}
			p.flow.From, p.flow.To = end(from, uint16(d.tcp.SrcPort)), end(to, uint16(d.tcp.DstPort))
		}
	}
	p.vlan = slices.Clone(d.vlan.ids)
	return p, v
}

func end(ip net.IP, port uint16) netip.AddrPort {
	addr, _ := netip.AddrFromSlice(ip) // 4 or 16 bytes by its layer
	return netip.AddrPortFrom(addr.Unmap(), port)
}

// unwrapPPI takes the per-packet information header off: version, flags, length
// and link type, the last two little endian.
func unwrapPPI(frame []byte) (layers.LinkType, []byte) {
	const fixed = 8
	if len(frame) < fixed {
		return 0, nil
	}
	length := int(binary.LittleEndian.Uint16(frame[2:]))
	link := binary.LittleEndian.Uint32(frame[4:])
	if length < fixed || length > len(frame) || link > 0xFFFF || link == uint32(linkPPI) {
		return 0, nil
	}
	return layers.LinkType(link), frame[length:]
}
