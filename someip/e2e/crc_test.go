package e2e

import (
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"hash/crc64"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/internal/corpus"
)

// E2E-2.
func TestCRCCheckValues(t *testing.T) {
	data := []byte("123456789")
	require.Equal(t, uint8(0x4B), ^crc8J1850.update(0xFF, data))
	require.Equal(t, uint8(0xDF), ^crc8H2F.update(0xFF, data))
	require.Equal(t, uint16(0x29B1), crc16CCITT.update(0xFFFF, data))
	require.Equal(t, uint32(0x1697D06A), ^crc32P4.update(^uint32(0), data))
	require.Equal(t, uint64(0x995DC9BBDF1939FA), ^crc64ECMA.update(^uint64(0), data))
}

// E2E-2: the samples of another implementation. Those of CRC-16/ARC belong to a CRC
// that no profile here has.
func TestCRCSamples(t *testing.T) {
	var file struct{ Samples []map[string]string }
	require.NoError(t, json.Unmarshal(corpus.Read(t, "vectors/autosar-e2e/autosar-crc-samples.json"), &file))
	require.NotEmpty(t, file.Samples)
	for _, sample := range file.Samples {
		data, err := hex.DecodeString(sample["data"])
		require.NoError(t, err)
		for name, got := range map[string]uint64{
			"crc8":    uint64(^crc8J1850.update(0xFF, data)),
			"crc8H2F": uint64(^crc8H2F.update(0xFF, data)),
			"crc16":   uint64(crc16CCITT.update(0xFFFF, data)),
			"crc32":   uint64(crc32.ChecksumIEEE(data)),
			"crc32P4": uint64(^crc32P4.update(^uint32(0), data)),
			"crc64":   ^crc64ECMA.update(^uint64(0), data),
		} {
			want, err := strconv.ParseUint(sample[name], 0, 64)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s of %s", name, sample["data"])
		}
	}
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
