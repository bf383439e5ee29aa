package capture_test

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/capture"
)

// segment is a part of a stream.
type segment struct {
	at, n int
	flags string
}

const isn = 0xFFFFFF00 // wraps soon

// streamOf writes a capture of a stream in segments; a SYN takes a number.
func streamOf(t *testing.T, stream []byte, segments ...segment) []byte {
	t.Helper()
	var frames [][]byte
	for _, s := range segments {
		seq := uint32(isn + 1)
		if s.flags == "S" {
			seq--
		}
		frames = append(frames, tcp(t, client, server, seq+uint32(s.at), s.flags, stream[s.at:s.at+s.n]))
	}
	return pcap(t, layers.LinkTypeEthernet, frames...)
}

func conversation() (stream []byte, want []someip.Message) {
	stream = append(stream, someip.ClientCookie...)
	cookie, _, _ := someip.ParseMessage(stream)
	want = append(want, cookie)
	for _, n := range []int{0, 3, 900, 17, 4000, 1} {
		want = append(want, request(n))
		stream = request(n).Append(stream)
	}
	return stream, want
}

// Whatever the segments, their order and their repetitions, the messages are the
// same.
func TestStreamOrder(t *testing.T) {
	stream, want := conversation()
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		parts := []segment{{0, 0, "S"}}
		for at := 0; at < len(stream); {
			n := min(1+rnd.IntN(700), len(stream)-at)
			parts = append(parts, segment{at, n, ""})
			if rnd.IntN(4) == 0 { // again, and more than before
				from := max(0, at-rnd.IntN(50))
				parts = append(parts, segment{from, min(len(stream)-from, at+n-from+rnd.IntN(50)), ""})
			}
			at += n
		}
		for i := range len(parts) - 2 {
			if j := 1 + i + rnd.IntN(min(4, len(parts)-1-i)); i > 0 {
				parts[i], parts[j] = parts[j], parts[i]
			}
		}
		parts = append(parts, segment{len(stream), 0, "F"})
		records, stats, err := read(t, streamOf(t, stream, parts...), capture.Config{})
		require.NoError(t, err)
		require.Equal(t, want, messages(t, records))
		require.Zero(t, stats.Skipped)
		offset, frame := int64(0), 0
		for _, r := range records {
			require.Equal(t, offset, r.Offset)
			require.GreaterOrEqual(t, r.Frame, frame)
			require.Equal(t, at(r.Frame), r.Time)
			offset, frame = offset+int64(len(r.Bytes)), r.Frame
		}
	}
}

// A capture that begins within a connection begins with its first segment that
// begins with a message.
func TestStreamFromTheMiddle(t *testing.T) {
	stream, want := conversation()
	head := 16 + 16 + 19
	cut := streamOf(t, stream, segment{head + 10, 906, ""}, segment{head + 916, 33, ""}, segment{head + 949, len(stream) - head - 949, ""})
	records, stats, err := read(t, cut, capture.Config{})
	require.NoError(t, err)
	require.Equal(t, want[4:], messages(t, records))
	require.Equal(t, capture.Stats{Frames: 3, Messages: 3, Other: 1}, stats)
}

// A hole is told, and reading goes on at the next segment that begins with a
// message, or behind a cookie.
func TestStreamGap(t *testing.T) {
	first, second := request(100).Append(nil), request(200).Append(nil)
	stream := bytes.Join([][]byte{first, first, second, []byte(someip.ClientCookie), second}, nil)
	// The middle of the second message is missing, and the rest of it with the third.
	file := streamOf(t, stream, segment{0, 0, "S"}, segment{0, 150, ""}, segment{200, 32 + 100, ""}, segment{332, len(stream) - 332, ""})
	records, stats, err := read(t, file, capture.Config{})
	require.NoError(t, err)
	require.Len(t, records, 4)
	require.NoError(t, records[0].Err)
	var gap *capture.GapError
	require.ErrorAs(t, records[1].Err, &gap)
	require.EqualValues(t, 50, gap.Bytes)
	require.Equal(t, first[:34], records[1].Bytes)
	require.True(t, someip.IsCookie(records[2].Bytes))
	require.Equal(t, second, records[3].Bytes)
	require.EqualValues(t, 34+132+116, stats.Skipped)
	require.EqualValues(t, len(stream)-len(second), records[3].Offset)
}

// Lost framing is told once, and found again by segment or cookie (TCP-5, CK-3).
func TestStreamFraming(t *testing.T) {
	good := request(5).Append(nil)
	alter := func(i int, v byte) []byte { b := bytes.Clone(good); b[i] = v; return b }
	for name, c := range map[string]struct {
		bytes []byte
		err   error
	}{
		"length":   {alter(7, 3), someip.ErrLength},
		"version":  {alter(12, 0), someip.ErrProtocolVersion},
		"type":     {alter(14, 0x77), someip.ErrMessageType},
		"code":     {alter(15, 0xFF), someip.ErrReturnCode},
		"too long": {alter(4, 0x7F), someip.ErrTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stream := range [][]byte{
				bytes.Join([][]byte{good, c.bytes, []byte(someip.ClientCookie), good}, nil),
				bytes.Join([][]byte{good, c.bytes, good}, nil),
			} {
				n := len(stream) - len(good)
				records, stats, err := read(t, streamOf(t, stream, segment{0, 0, "S"}, segment{0, n, ""}, segment{n, len(good), ""}), capture.Config{})
				require.NoError(t, err)
				require.Equal(t, good, records[0].Bytes)
				require.ErrorIs(t, records[1].Err, c.err)
				require.EqualValues(t, len(good), records[1].Offset)
				require.Equal(t, good, records[len(records)-1].Bytes)
				require.EqualValues(t, len(c.bytes), stats.Skipped)
				require.EqualValues(t, 1, stats.Faults)
			}
		})
	}
}

// A stream of which nothing but what comes early is there.
func TestStreamOfNothing(t *testing.T) {
	one := request(9).Append(nil)
	records, _, err := read(t, pcap(t, layers.LinkTypeEthernet,
		tcp(t, client, server, 5, "S", nil), tcp(t, client, server, 100, "", one)), capture.Config{TCP: []uint16{30509}})
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.EqualError(t, records[0].Err, "capture: 94 bytes of the stream are missing")
	require.Equal(t, 1, records[0].Frame)
	require.Equal(t, one, records[1].Bytes)
}

// What a stream ends with in the middle of a message is told too.
func TestStreamEnds(t *testing.T) {
	stream := request(9).Append(request(2).Append(nil))
	for _, flags := range []string{"", "F", "R"} {
		records, stats, err := read(t, streamOf(t, stream, segment{0, 30, ""}, segment{30, 0, flags}), capture.Config{})
		require.NoError(t, err)
		require.Len(t, records, 2)
		require.ErrorIs(t, records[1].Err, someip.ErrShort)
		require.EqualValues(t, 12, stats.Skipped)
	}
	// A new connection of the same ports begins anew.
	frames := [][]byte{
		tcp(t, client, server, 100, "S", nil), tcp(t, client, server, 101, "", stream),
		tcp(t, client, server, 7, "S", nil), tcp(t, client, server, 8, "", stream), tcp(t, client, server, 8+uint32(len(stream)), "R", nil),
	}
	records, _, err := read(t, pcap(t, layers.LinkTypeEthernet, frames...), capture.Config{})
	require.NoError(t, err)
	require.Len(t, messages(t, records), 4)
}

// Memory is bounded whatever a capture holds.
func TestStreamLimits(t *testing.T) {
	half := request(100).Append(nil)[:80]
	var frames [][]byte
	from := func(i int) netip.AddrPort { return netip.AddrPortFrom(client.Addr(), uint16(20000+i)) }
	for i := range 50 {
		frames = append(frames, tcp(t, from(i), server, 1, "", half))
	}
	for _, cfg := range []capture.Config{{MaxStreams: 10}, {MaxBuffered: 10 * len(half)}} {
		cfg.TCP = []uint16{30509}
		records, stats, err := read(t, pcap(t, layers.LinkTypeEthernet, frames...), cfg)
		require.NoError(t, err)
		require.Len(t, records, 50)
		require.EqualValues(t, 50*len(half), stats.Skipped)
		require.Equal(t, from(0), records[0].From, "the oldest first")
		require.Equal(t, 1, records[0].Frame)
	}

	// More than TCP would keep under way is no longer waited for.
	frames = [][]byte{tcp(t, client, server, 0, "", request(0).Append(nil))}
	for i := range 1100 {
		frames = append(frames, tcp(t, client, server, uint32(32+16*i), "", request(0).Append(nil)))
	}
	records, _, err := read(t, pcap(t, layers.LinkTypeEthernet, frames...), capture.Config{})
	require.NoError(t, err)
	require.Len(t, records, 1+1+1100)
	var gap *capture.GapError
	require.ErrorAs(t, records[1].Err, &gap)
	require.EqualValues(t, 16, gap.Bytes)
}
