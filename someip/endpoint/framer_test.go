package endpoint_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/internal/corpus"
)

func message(payload string) []byte {
	return someip.NewRequest(0x1234, 0x0421, 1, 0x1343, 1, []byte(payload)).Append(nil)
}

// feed gives a stream to a framer in chunks and returns the messages.
func feed(f *endpoint.Framer, stream []byte, chunk int) (msgs [][]byte, err error) {
	for len(stream) > 0 {
		n := copy(f.Space(), stream[:min(chunk, len(stream))])
		f.Received(n)
		stream = stream[n:]
		for {
			m, err := f.Next()
			if err != nil {
				return msgs, err
			}
			if m == nil {
				break
			}
			msgs = append(msgs, bytes.Clone(m))
		}
	}
	return msgs, nil
}

func TestFramerAnyChunks(t *testing.T) {
	want := [][]byte{message(""), message("abc"), message(string(make([]byte, 9000))), message("z")}
	stream := bytes.Join(want, nil)
	for _, chunk := range []int{1, 7, 16, 100, 5000, len(stream)} {
		got, err := feed(&endpoint.Framer{}, stream, chunk)
		require.NoError(t, err)
		require.Equal(t, want, got, "chunks of %d", chunk)
	}
}

func TestFramerRefuses(t *testing.T) {
	alter := func(at int, v byte) []byte { m := message("abc"); m[at] = v; return m }
	length := func(l uint32) []byte { m := message("abc"); binary.BigEndian.PutUint32(m[4:], l); return m }
	for name, c := range map[string]struct {
		bytes []byte
		err   error
	}{
		"case 2: Length 0":       {length(0), endpoint.ErrFraming},
		"case 2: Length 7":       {length(7), endpoint.ErrFraming},
		"Length that would wrap": {length(0xFFFFFFFA), endpoint.ErrOversize},
		"oversize":               {length(endpoint.DefaultMaxMessage - 7), endpoint.ErrOversize},
		"protocol version":       {alter(12, 2), endpoint.ErrFraming},
		"unknown type":           {alter(14, 0x40), endpoint.ErrFraming},
		"TP segment":             {alter(14, 0x20), endpoint.ErrFraming},
		"return code":            {alter(15, 0x5F), endpoint.ErrFraming},
	} {
		t.Run(name, func(t *testing.T) {
			good := message("good")
			got, err := feed(&endpoint.Framer{}, append(good, c.bytes...), 1<<20)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, [][]byte{good}, got)

			// After a cookie the stream is found again (TCP-5).
			stream := bytes.Join([][]byte{[]byte(someip.ClientCookie), c.bytes, []byte(someip.ClientCookie), good}, nil)
			for _, chunk := range []int{1, 5, len(stream)} {
				f := &endpoint.Framer{}
				got, err = feed(f, stream, chunk)
				require.NoError(t, err)
				require.Equal(t, [][]byte{good}, got)
				require.EqualValues(t, len(c.bytes), f.Skipped)
			}
		})
	}
}

func TestFramerSkipsCookiesOfItsPeer(t *testing.T) {
	stream := append([]byte(someip.ServerCookie), message("a")...)
	got, err := feed(&endpoint.Framer{From: endpoint.FromServer}, stream, 3)
	require.NoError(t, err)
	require.Equal(t, [][]byte{message("a")}, got)
}

// The buffer follows what was received, whatever the Length field says (TCP-4).
func TestFramerGrowsWithData(t *testing.T) {
	m := message("")
	binary.BigEndian.PutUint32(m[4:], 8<<20)
	f := &endpoint.Framer{}
	_, err := feed(f, m, len(m))
	require.NoError(t, err)
	require.LessOrEqual(t, len(f.Space()), 4<<10)
	_, err = feed(f, make([]byte, 100_000), 1000)
	require.NoError(t, err)
	require.LessOrEqual(t, len(f.Space()), 256<<10)
}

func TestFramerDoesNotAllocate(t *testing.T) {
	f := &endpoint.Framer{}
	stream := bytes.Repeat(message("12345678"), 10)
	run := func() {
		f.Received(copy(f.Space(), stream))
		for m, _ := f.Next(); m != nil; m, _ = f.Next() {
		}
	}
	run()
	require.Zero(t, testing.AllocsPerRun(100, run))
}

// FuzzFramer: whatever the bytes and the chunks, the messages are the same,
// each is whole, and memory follows the input.
func FuzzFramer(f *testing.F) {
	f.Add(append(message("abc"), message("")...), uint8(3), false)
	f.Add(bytes.Join([][]byte{[]byte(someip.ClientCookie), {1, 2, 3}, []byte(someip.ClientCookie), message("x")}, nil), uint8(1), false)
	f.Add(append(message("a"), 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5), uint8(16), true)
	var all []byte
	for i, b := range corpus.Messages(f, 32, nil) {
		all = append(all, b...)
		f.Add(b, uint8(i), i%2 == 0)
	}
	f.Add(all, uint8(41), false)
	f.Fuzz(func(t *testing.T, stream []byte, chunk uint8, cookies bool) {
		one := &endpoint.Framer{Cookies: cookies, MaxMessage: 1 << 16}
		got, gotErr := feed(one, stream, int(chunk)+1)
		all := &endpoint.Framer{Cookies: cookies, MaxMessage: 1 << 16}
		want, wantErr := feed(all, stream, len(stream)+1)
		require.Equal(t, want, got)
		require.Equal(t, wantErr == nil, gotErr == nil)
		require.LessOrEqual(t, len(one.Space()), 8<<10+4*len(stream))
		for _, m := range got {
			h, err := someip.ParseHeader(m)
			require.NoError(t, err)
			require.EqualValues(t, len(m), h.WireSize())
		}
	})
}
