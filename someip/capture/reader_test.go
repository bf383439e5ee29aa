package capture_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/capture"
	"carisma.dev/gateway/someip/sd"
)

// Every kind of file, link and network yields the same messages.
func TestFormats(t *testing.T) {
	one, two := request(3), request(8)
	datagram := two.Append(one.Append(nil)) // the second not aligned
	for _, network := range []struct {
		name     string
		from, to netip.AddrPort
		vlan     []uint16
	}{
		{"IPv4", client, server, nil},
		{"IPv6", client6, server6, nil},
		{"VLAN", client, server, []uint16{73}},
		{"stacked VLAN, IPv6", client6, server6, []uint16{100, 73}},
	} {
		frame := udp(t, network.from, network.to, datagram, network.vlan...)
		ip := frame[14+4*len(network.vlan):]
		cooked := append(make([]byte, 14), frame[12+4*len(network.vlan):]...)
		cooked[5] = 6
		family := byte(2)
		if network.from.Addr().Is6() {
			family = 30
		}
		for name, file := range map[string][]byte{
			"pcap":             pcap(t, layers.LinkTypeEthernet, frame),
			"pcapng":           pcapng(t, layers.LinkTypeEthernet, frame),
			"pcap, zipped":     zipped(t, pcap(t, layers.LinkTypeEthernet, frame)),
			"pcapng, zipped":   zipped(t, pcapng(t, layers.LinkTypeEthernet, frame)),
			"PPI":              pcap(t, 192, ppi(frame)),
			"PPI in pcapng":    pcapng(t, 192, ppi(frame)),
			"raw IP":           pcap(t, layers.LinkTypeRaw, ip),
			"Linux any device": pcap(t, layers.LinkTypeLinuxSLL, cooked),
			"BSD loopback":     pcap(t, layers.LinkTypeNull, append([]byte{family, 0, 0, 0}, ip...)),
		} {
			t.Run(network.name+", "+name, func(t *testing.T) {
				records, stats, err := read(t, file, capture.Config{})
				require.NoError(t, err)
				require.Equal(t, []someip.Message{one, two}, messages(t, records))
				require.Equal(t, capture.Stats{Frames: 1, Messages: 2}, stats)
				for i, r := range records {
					require.Equal(t, capture.Flow{Transport: capture.UDP, From: network.from, To: network.to}, r.Flow)
					require.Equal(t, capture.Position{Frame: 1, Time: at(1), Offset: int64(i * one.Size())}, r.Position)
					if strings.HasPrefix(name, "pcap") || strings.HasPrefix(name, "PPI") {
						require.Equal(t, network.vlan, r.VLAN)
					}
				}
			})
		}
	}
}

func TestNoFile(t *testing.T) {
	for _, b := range [][]byte{nil, {1}, []byte("nothing of the kind"), {0x1F, 0x8B, 8}, {0x0A, 0x0D, 0x0D, 0x0A}, {0xD4, 0xC3, 0xB2, 0xA1, 2}} {
		_, err := capture.NewReader(bytes.NewReader(b), capture.Config{})
		require.Error(t, err, "% x", b)
	}
	_, err := capture.NewReader(bytes.NewReader([]byte("text")), capture.Config{})
	require.ErrorIs(t, err, capture.ErrFormat)
	records, _, err := read(t, pcap(t, layers.LinkTypeEthernet), capture.Config{})
	require.NoError(t, err)
	require.Empty(t, records)
}

// A file that is cut off yields what is before the cut, and says where it is.
func TestTruncatedFile(t *testing.T) {
	frame := udp(t, client, server, request(5).Append(nil))
	for _, file := range [][]byte{pcap(t, layers.LinkTypeEthernet, frame, frame), pcapng(t, layers.LinkTypeEthernet, frame, frame)} {
		records, _, err := read(t, file[:len(file)-20], capture.Config{})
		require.Len(t, records, 1)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.ErrorContains(t, err, "behind frame 1")
	}
}

// What is no SOME/IP is left alone: other protocols, other ports, what only has the
// length in the same place.
func TestOtherTraffic(t *testing.T) {
	doip := append([]byte{0x02, 0xFD, 0x80, 0x01, 0, 0, 0, 8}, 0x0E, 0x80, 0, 1, 1, 0, 0, 0)
	arp := make([]byte, 42)
	arp[12], arp[13] = 8, 6
	first := udp(t, client, server, make([]byte, 100))
	binary.BigEndian.PutUint16(first[20:], 0x2000) // more fragments
	records, stats, err := read(t, pcap(t, layers.LinkTypeEthernet,
		udp(t, client, ap("10.0.0.2:53"), []byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x00\x00\x01\x00\x01")),
		udp(t, client, ap("10.0.0.2:13400"), doip),
		tcp(t, client, ap("10.0.0.2:22"), 1, "", []byte("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n")),
		tcp(t, client, ap("10.0.0.2:13400"), 1, "", doip),
		udp(t, client, ap("10.0.0.2:9"), nil),
		arp, arp[:10], first,
	), capture.Config{})
	require.NoError(t, err)
	require.Empty(t, records)
	require.Equal(t, capture.Stats{Frames: 8, Other: 4, Undecodable: 2, Fragments: 1}, stats)
}

// On a port that is known to carry SOME/IP what is wrong is told with its place:
// one given, one of service discovery, one that was offered.
func TestFaults(t *testing.T) {
	junk := append(request(4).Append(nil), bytes.Repeat([]byte{0xA5}, 32)...)
	offer := sd.Message{Session: 1, Flags: sd.FlagUnicast, Options: []sd.Option{sd.EndpointOption(server, sd.UDP)}, Entries: []sd.Entry{
		{Type: sd.OfferService, Service: 0x1234, Instance: 1, Major: 1, TTL: 3, Count1: 1},
	}}
	b, err := offer.Append(nil)
	require.NoError(t, err)
	announce := udp(t, ap("10.0.0.2:30490"), ap("224.244.224.245:30490"), b)
	bad := udp(t, client, server, junk)

	records, stats, err := read(t, pcap(t, layers.LinkTypeEthernet, bad, announce, bad), capture.Config{})
	require.NoError(t, err)
	require.Len(t, records, 3, "the first came before the offer, and does not look like SOME/IP")
	require.True(t, records[0].Multicast())
	require.NoError(t, records[1].Err)
	require.ErrorIs(t, records[2].Err, someip.ErrShort)
	require.Equal(t, junk[20:], records[2].Bytes)
	require.Equal(t, "frame 3, byte 20, udp 10.0.0.1:40000 > 10.0.0.2:30509", records[2].String())
	require.Equal(t, capture.Stats{Frames: 3, Messages: 2, Faults: 1, Other: 1}, stats)

	for _, cfg := range []capture.Config{{UDP: []uint16{30509}}, {UDP: []uint16{30509}, Only: true}} {
		records, _, err = read(t, pcap(t, layers.LinkTypeEthernet, bad, announce), cfg)
		require.NoError(t, err)
		require.Len(t, records, map[bool]int{false: 3, true: 2}[cfg.Only])
		require.ErrorIs(t, records[1].Err, someip.ErrShort)
	}

	// A message that is wrong in itself is whole, and those behind it follow; not
	// behind another protocol version, which may mean another Length.
	alter := func(i int, v byte) []byte { b := request(4).Append(nil); b[i] = v; return b }
	for _, c := range []struct {
		bytes []byte
		err   error
		more  bool
	}{
		{alter(14, 0x40), someip.ErrMessageType, true},
		{alter(15, 0x7F), someip.ErrReturnCode, true},
		{alter(12, 2), someip.ErrProtocolVersion, false},
		{alter(7, 7), someip.ErrLength, false},
		{alter(7, 255), someip.ErrShort, false},
	} {
		frame := udp(t, client, server, append(c.bytes, request(1).Append(nil)...))
		records, _, err := read(t, pcap(t, layers.LinkTypeEthernet, frame), capture.Config{UDP: []uint16{30509}})
		require.NoError(t, err)
		require.ErrorIs(t, records[0].Err, c.err)
		require.Equal(t, c.more, len(records) == 2)
		require.EqualValues(t, 0x1234, records[0].Message.Service)
	}
}

// A frame that was captured in part holds its messages in part.
func TestSnapLength(t *testing.T) {
	frame := udp(t, client, server, request(100).Append(request(2).Append(nil)))
	records, _, err := read(t, pcap(t, layers.LinkTypeEthernet, frame[:len(frame)-50]), capture.Config{UDP: []uint16{30509}})
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.NoError(t, records[0].Err)
	require.ErrorIs(t, records[1].Err, someip.ErrShort)
}

func TestNames(t *testing.T) {
	require.Equal(t, "tcp", capture.TCP.String())
	require.Equal(t, "protocol 1", capture.Transport(1).String())
	require.EqualError(t, &capture.GapError{Bytes: 5}, "capture: 5 bytes of the stream are missing")
}
