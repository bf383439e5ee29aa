package e2e

import (
	"hash/crc64"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// 12.2.
// E2E-2.
func TestCRCCheckValues(t *testing.T) {
	data := []byte("123456789")
	require.Equal(t, uint8(0x4B), ^crc8J1850.update(0xFF, data))
	require.Equal(t, uint8(0xDF), ^crc8H2F.update(0xFF, data))
	require.Equal(t, uint16(0x29B1), crc16CCITT.update(0xFFFF, data))
	require.Equal(t, uint32(0x1697D06A), ^crc32P4.update(^uint32(0), data))
	require.Equal(t, uint64(0x995DC9BBDF1939FA), ^crc64ECMA.update(^uint64(0), data))
}

// Sixteen bytes at a time gives what one at a time gives, whatever the length.
func TestSlicing(t *testing.T) {
	data := make([]byte, 200)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(data)
	ecma := crc64.MakeTable(crc64.ECMA)
	for from := range 17 {
		for to := from; to <= len(data); to++ {
			slow := ^uint32(0)
			for _, b := range data[from:to] {
				slow = slow>>8 ^ crc32P4[0][byte(slow)^b]
			}
			require.Equal(t, slow, crc32P4.update(^uint32(0), data[from:to]))
			require.Equal(t, crc64.Checksum(data[from:to], ecma), ^crc64ECMA.update(^uint64(0), data[from:to]))
		}
	}
}
