package capture_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/capture"
)

// The captures of the tests are written by these functions.

func ap(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

var (
	client, server   = ap("10.0.0.1:40000"), ap("10.0.0.2:30509")
	client6, server6 = ap("[fd53::1]:40000"), ap("[fd53::2]:30509")

	began = time.Unix(1_700_000_000, 0).UTC()
)

// request is a message of a length of its own.
func request(n int) someip.Message {
	return someip.NewRequest(0x1234, 0x0421, 1, 0x1343, uint16(n), bytes.Repeat([]byte{byte(n)}, n))
}

func serialize(tb testing.TB, parts ...gopacket.SerializableLayer) []byte {
	tb.Helper()
	b := gopacket.NewSerializeBuffer()
	require.NoError(tb, gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, parts...))
	return slices.Clone(b.Bytes())
}

// network returns the layers from Ethernet to IP.
func network(protocol layers.IPProtocol, from, to netip.AddrPort, vlan ...uint16) []gopacket.SerializableLayer {
	link := layers.EthernetTypeIPv4
	if from.Addr().Is6() {
		link = layers.EthernetTypeIPv6
	}
	eth := &layers.Ethernet{SrcMAC: make([]byte, 6), DstMAC: make([]byte, 6), EthernetType: link}
	all := []gopacket.SerializableLayer{eth}
	for i, id := range vlan {
		all = append(all, &layers.Dot1Q{VLANIdentifier: id, Type: link})
		if i == 0 {
			eth.EthernetType = layers.EthernetTypeDot1Q
		} else {
			all[i].(*layers.Dot1Q).Type = layers.EthernetTypeDot1Q
		}
	}
	if link == layers.EthernetTypeIPv6 {
		return append(all, &layers.IPv6{Version: 6, NextHeader: protocol, HopLimit: 1, SrcIP: from.Addr().AsSlice(), DstIP: to.Addr().AsSlice()})
	}
	return append(all, &layers.IPv4{Version: 4, TTL: 1, Protocol: protocol, SrcIP: from.Addr().AsSlice(), DstIP: to.Addr().AsSlice()})
}

func udp(tb testing.TB, from, to netip.AddrPort, payload []byte, vlan ...uint16) []byte {
	tb.Helper()
	all := network(layers.IPProtocolUDP, from, to, vlan...)
	all = append(all, &layers.UDP{SrcPort: layers.UDPPort(from.Port()), DstPort: layers.UDPPort(to.Port())}, gopacket.Payload(payload))
	return serialize(tb, all...)
}

func tcp(tb testing.TB, from, to netip.AddrPort, seq uint32, flags string, payload []byte) []byte {
	tb.Helper()
	all := network(layers.IPProtocolTCP, from, to)
	t := &layers.TCP{SrcPort: layers.TCPPort(from.Port()), DstPort: layers.TCPPort(to.Port()), Seq: seq}
	for _, f := range flags {
		switch f {
		case 'S':
			t.SYN = true
		case 'F':
			t.FIN = true
		case 'R':
			t.RST = true
		}
	}
	return serialize(tb, append(all, t, gopacket.Payload(payload))...)
}

// at is the time of a frame, from 1.
func at(frame int) time.Time { return began.Add(time.Duration(frame) * time.Millisecond) }

func info(frame int, b []byte) gopacket.CaptureInfo {
	return gopacket.CaptureInfo{Timestamp: at(frame), CaptureLength: len(b), Length: len(b)}
}

// pcap writes a file of frames.
func pcap(tb testing.TB, link layers.LinkType, frames ...[]byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := pcapgo.NewWriterNanos(&b)
	require.NoError(tb, w.WriteFileHeader(1<<16, link))
	for i, f := range frames {
		require.NoError(tb, w.WritePacket(info(i+1, f), f))
	}
	return b.Bytes()
}

func pcapng(tb testing.TB, link layers.LinkType, frames ...[]byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriter(&b, link)
	require.NoError(tb, err)
	for i, f := range frames {
		require.NoError(tb, w.WritePacket(info(i+1, f), f))
	}
	require.NoError(tb, w.Flush())
	return b.Bytes()
}

func zipped(tb testing.TB, file []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(file)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return b.Bytes()
}

// ppi puts the per-packet information header with a field of some bytes before an
// Ethernet frame.
func ppi(frame []byte) []byte {
	const length = 8 + 12
	b := binary.LittleEndian.AppendUint16([]byte{0, 0}, length)
	b = binary.LittleEndian.AppendUint32(b, uint32(layers.LinkTypeEthernet))
	return append(append(b, make([]byte, 12)...), frame...)
}

// read returns all records of a file and the error behind them, nil at its end.
func read(tb testing.TB, file []byte, cfg capture.Config) ([]capture.Record, capture.Stats, error) {
	tb.Helper()
	r, err := capture.NewReader(bytes.NewReader(file), cfg)
	require.NoError(tb, err)
	var all []capture.Record
	for {
		rec, err := r.Next()
		if err == io.EOF { //nolint:errorlint // exactly this, as readers promise
			return all, r.Stats(), nil
		}
		if err != nil {
			_, again := r.Next()
			require.Equal(tb, err, again)
			return all, r.Stats(), err
		}
		all = append(all, rec)
	}
}

// messages wants all records to be good, and returns their messages.
func messages(tb testing.TB, records []capture.Record) []someip.Message {
	tb.Helper()
	var all []someip.Message
	for _, r := range records {
		require.NoError(tb, r.Err, "%v", r.Position)
		require.Equal(tb, r.Bytes, r.Message.Append(nil))
		all = append(all, r.Message)
	}
	return all
}
