package capture_test

import (
	"bytes"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/capture"
	"carisma.dev/gateway/someip/internal/corpus"
)

// FuzzReader: whatever the file, the reader ends, every record is bytes of a frame,
// and a message without error is whole.
func FuzzReader(f *testing.F) {
	one, two := request(3).Append(nil), request(8).Append(nil)
	datagram := udp(f, client, server, append(one, two...), 73)
	f.Add(pcap(f, layers.LinkTypeEthernet, datagram, udp(f, client6, server6, two[:20])))
	f.Add(pcapng(f, layers.LinkTypeEthernet, datagram))
	f.Add(zipped(f, pcap(f, 192, ppi(datagram))))
	f.Add(pcap(f, layers.LinkTypeEthernet,
		tcp(f, client, server, 99, "S", nil), tcp(f, client, server, 110, "", two[10:]), tcp(f, client, server, 100, "", two[:10]),
		tcp(f, client, server, 200, "", []byte(someip.ClientCookie)), tcp(f, client, server, 300, "F", one)))
	for _, b := range append(corpus.Files(f, "pcap", 8<<10), corpus.Files(f, "frames", 8<<10)...) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		cfg := capture.Config{UDP: []uint16{30509}, TCP: []uint16{30509}, MaxMessage: 1 << 12, MaxBuffered: 1 << 14, MaxStreams: 4}
		r, err := capture.NewReader(bytes.NewReader(file), cfg)
		if err != nil {
			return
		}
		var n uint64
		for {
			rec, err := r.Next()
			if err != nil {
				break
			}
			n++
			require.Positive(t, rec.Frame)
			if rec.Err == nil {
				require.Equal(t, rec.Bytes, rec.Message.Append(nil))
			}
		}
		s := r.Stats()
		require.Equal(t, n, s.Messages+s.Faults)
		require.LessOrEqual(t, s.Other+s.Undecodable+s.Fragments, s.Frames)
	})
}
