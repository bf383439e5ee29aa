package tp_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/internal/corpus"
	"carisma.dev/gateway/someip/tp"
)

// udpOf returns the payload of a UDP datagram in an Ethernet frame.
func udpOf(t *testing.T, frame []byte) []byte {
	t.Helper()
	at := 12
	for frame[at] == 0x81 && frame[at+1] == 0 { // VLAN
		at += 4
	}
	require.Equal(t, []byte{8, 0}, frame[at:at+2], "IPv4")
	at += 2
	at += int(frame[at]&0x0F) * 4
	length := int(binary.BigEndian.Uint16(frame[at+4:]))
	return frame[at+8 : at+length]
}

// reassembled wants the datagrams to be one message, which segments into the same
// datagrams again if it has a session.
func reassembled(t *testing.T, datagrams [][]byte) {
	t.Helper()
	r := tp.NewReassembler(tp.Config{})
	for i, b := range datagrams {
		whole, err := r.Receive(now, path, parse(t, b))
		require.NoError(t, err)
		if i < len(datagrams)-1 {
			require.Nil(t, whole)
			continue
		}
		m := parse(t, whole)
		var payload []byte
		for _, b := range datagrams {
			payload = append(payload, b[someip.HeaderSize+tp.HeaderSize:]...)
		}
		require.Equal(t, payload, m.Payload)
		if m.Session != 0 {
			require.Equal(t, datagrams, split(t, tp.Rule{}, m))
		}
	}
	require.EqualValues(t, 1, r.Stats().Completed)
}

func TestCorpusPcap(t *testing.T) {
	b := corpus.Read(t, "pcap/nDPI/someip-tp.pcap")
	const fileHeader, recordHeader = 24, 16
	require.Equal(t, uint32(0xA1B2C3D4), binary.LittleEndian.Uint32(b))
	var datagrams [][]byte
	for b = b[fileHeader:]; len(b) > 0; {
		size := int(binary.LittleEndian.Uint32(b[8:]))
		datagrams = append(datagrams, udpOf(t, b[recordHeader:recordHeader+size]))
		b = b[recordHeader+size:]
	}
	require.Len(t, datagrams, 9)
	reassembled(t, datagrams)
}

// Two segments of a message without session, of which others are missing.
func TestCorpusFrames(t *testing.T) {
	r := tp.NewReassembler(tp.Config{})
	for name, want := range map[string]tp.Header{
		"SomeIpTp1.dat": {More: true}, "SomeIpTp2.dat": {Offset: 91872},
	} {
		frame, err := hex.DecodeString(string(bytes.TrimSpace(corpus.Read(t, "frames/PcapPlusPlus/"+name))))
		require.NoError(t, err)
		m := parse(t, udpOf(t, frame))
		require.True(t, m.Type.TP())
		require.Zero(t, m.Session)
		got, err := tp.ParseHeader(m.Payload)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, m.Payload[:tp.HeaderSize], got.Append(nil))
		whole, _ := r.Receive(now, path, m)
		require.Nil(t, whole)
	}
	require.EqualValues(t, 1, r.Stats().Started)
	balanced(t, r.Stats())
}
