package sd_test

import (
	"bytes"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/internal/corpus"
	"carisma.dev/gateway/someip/sd"
)

// Every service discovery message in the captures of the corpus decodes, and
// encodes to the same bytes. They are found by their message id: the payload of a
// datagram is contiguous in a capture file.
func TestCorpusMessages(t *testing.T) {
	found := 0
	for _, kind := range []string{"pcap", "frames"} {
		require.NoError(t, filepath.WalkDir(corpus.Path(t, kind), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if raw := make([]byte, hex.DecodedLen(len(data))); filepath.Ext(path) == ".dat" {
				n, err := hex.Decode(raw, bytes.TrimSpace(data))
				if err != nil {
					return err
				}
				data = raw[:n]
			}
			found += roundTrip(t, path, data)
			return nil
		}))
	}
	t.Logf("%d messages", found)
	require.NotZero(t, found)
}

// roundTrip decodes and encodes all messages in data, and returns their number.
func roundTrip(t *testing.T, path string, data []byte) (n int) {
	t.Helper()
	id := []byte{0xFF, 0xFF, 0x81, 0x00}
	for at := bytes.Index(data, id); at >= 0; at = bytes.Index(data, id) {
		data = data[at:]
		h, err := someip.ParseHeader(data)
		if err != nil || h.WireSize() > uint64(min(len(data), 1416)) || h.Validate() != nil || h.Type != someip.Notification {
			data = data[1:] // bytes that only look like one
			continue
		}
		m, rest, err := sd.Parse(data)
		require.NoError(t, err, path)
		require.NoError(t, m.OptionErr, path)
		for i := range m.Entries {
			_, _, ok := m.Runs(&m.Entries[i])
			require.True(t, ok, "%s: entry %d of % x", path, i, data[:len(data)-len(rest)])
		}
		again, err := m.Append(nil)
		require.NoError(t, err, path)
		require.Equal(t, data[:len(data)-len(rest)], again, path)
		data, n = rest, n+1
	}
	return n
}
