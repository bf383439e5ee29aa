package secure

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzRecord(f *testing.F) {
	hello := []byte{22, 0xFE, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}
	f.Add(hello)
	f.Add(hello[:13])
	f.Add([]byte{23, 0xFE, 0xFD, 0, 1, 0, 0, 0, 0, 0, 9, 0, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, ok := epoch(b)
		if beginsHandshake(b) {
			require.True(t, ok)
			require.Zero(t, e)
			require.Greater(t, len(b), recordHeader)
		}
	})
}

func TestBeginsHandshake(t *testing.T) {
	hello := []byte{22, 0xFE, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}
	require.True(t, beginsHandshake(hello))
	for i := range hello {
		require.False(t, beginsHandshake(hello[:i]))
	}
	for at, v := range map[int]byte{0: 23, 1: 3, 4: 1, 13: 2} {
		other := append([]byte(nil), hello...)
		other[at] = v
		require.False(t, beginsHandshake(other))
	}
}
