package tp_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/tp"
)

// from returns a path from host i.
func from(i int) tp.Path {
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], 0x0A000000+uint32(i))
	return tp.Path{From: netip.AddrPortFrom(netip.AddrFrom4(a), 30509)}
}

// begin receives the first segment of a message of a client.
func begin(t *testing.T, r *tp.Reassembler, now time.Time, p tp.Path, client uint16) {
	t.Helper()
	m := segment(1, 3, 0)
	m.Client = client
	whole, err := r.Receive(now, p, m)
	require.NoError(t, err)
	require.Nil(t, whole)
}

// TP-9: memory is taken for what came, not for where it belongs.
func TestMemoryByReceivedData(t *testing.T) {
	r := tp.NewReassembler(tp.Config{MaxMessage: 1 << 30})
	payload := append(tp.Header{Offset: 0x0FFFFFF0, More: true}.Append(nil), make([]byte, 1392)...)
	m := event(1, payload)
	m.Type |= someip.FlagTP
	_, err := r.Receive(now, path, m)
	require.NoError(t, err)
	require.Less(t, r.Stats().Bytes, 4096)

	// The largest offset there is does not wrap.
	r = tp.NewReassembler(tp.Config{})
	m.Payload = append(tp.Header{Offset: 0xFFFFFFF0, More: true}.Append(nil), make([]byte, 1392)...)
	_, err = r.Receive(now, path, m)
	require.ErrorContains(t, err, "segment at byte 4294967280: too long")
	require.Zero(t, r.Stats().Bytes)
}

// TP-9: the oldest message of a peer goes when it begins too many.
func TestMaxPeerMessages(t *testing.T) {
	var gone []uint16
	r := tp.NewReassembler(tp.Config{MaxPeerMessages: 3, OnCancel: func(c tp.Cancelled) {
		require.Equal(t, tp.Evicted, c.Reason)
		gone = append(gone, c.Header.Client)
	}})
	begin(t, r, now, from(2), 99)
	for i := range uint16(3) {
		begin(t, r, now.Add(time.Duration(i)), from(1), i)
	}
	m := segment(1, 3, 1) // client 0 is the youngest now
	m.Client = 0
	_, err := r.Receive(now.Add(10), from(1), m)
	require.NoError(t, err)
	begin(t, r, now.Add(11), from(1), 3)
	begin(t, r, now.Add(12), from(1), 4)
	require.Equal(t, []uint16{1, 2}, gone)
	require.Equal(t, 4, r.Stats().Open)
	balanced(t, r.Stats())
}

// TP-9: the oldest message of all goes when there are too many.
func TestMaxMessages(t *testing.T) {
	r := tp.NewReassembler(tp.Config{MaxMessages: 10})
	for i := range 1000 {
		begin(t, r, now.Add(time.Duration(i)), from(i), 1)
	}
	s := r.Stats()
	require.Equal(t, 10, s.Open)
	require.EqualValues(t, 990, s.Cancelled[tp.Evicted])
	require.Less(t, s.Bytes, 10*256)
	next, ok := r.Next()
	require.True(t, ok)
	require.Equal(t, now.Add(5*time.Second+990), next)
	require.Equal(t, 10, r.Tick(now.Add(time.Hour)))
	balanced(t, r.Stats())
}

// TP-9: the memory of a peer and of all is bounded; a message that is too large
// alone goes itself.
func TestMaxBytes(t *testing.T) {
	const limit = 64 << 10
	for name, c := range map[string]tp.Config{
		"peer": {MaxPeerBytes: limit, Reorder: tp.AnyOrder},
		"all":  {MaxBytes: limit, Reorder: tp.AnyOrder},
	} {
		t.Run(name, func(t *testing.T) {
			r := tp.NewReassembler(c)
			data := make([]byte, 1392)
			for round := range 200 {
				for client := range uint16(8) {
					m := piece(1, data, 0, len(data), true)
					tp.Header{Offset: uint32(round * len(data)), More: true}.Append(m.Payload[:0])
					m.Client = client
					_, _ = r.Receive(now, path, m) // of what was evicted the rest is stray
					s := r.Stats()
					balanced(t, s)
					if s.Bytes > limit {
						t.Fatalf("%d bytes", s.Bytes)
					}
				}
			}
			require.NotZero(t, r.Stats().Cancelled[tp.Evicted])

			r = tp.NewReassembler(c)
			long := make([]byte, 4*limit)
			for i := range 1000 {
				_, err := r.Receive(now, path, piece(1, long, i*small, small, true))
				require.NoError(t, err)
			}
			big := piece(1, long, 0, 32<<10, true)
			for i := range 4 {
				tp.Header{Offset: uint32(1000*small + i*32<<10), More: true}.Append(big.Payload[:0])
				if _, err := r.Receive(now, path, big); err != nil {
					require.ErrorContains(t, err, "evicted")
					require.Zero(t, r.Stats().Bytes)
					return
				}
			}
			require.Fail(t, "a message of more than the limit")
		})
	}
}
