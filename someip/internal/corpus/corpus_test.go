package corpus_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/internal/corpus"
)

// What stands in captures, in hexadecimal frames and in vectors is found, each kind once.
func TestMessages(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CARISMA_CORPUS", dir)
	require.Empty(t, corpus.Messages(t, 10, nil), "no corpus")
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	one := someip.NewNotification(1, 0x8001, 1, 1, []byte("one"))
	two := someip.NewNotification(2, 0x8001, 1, 1, []byte("two"))
	write("pcap/peer/a.pcap", "head"+string(one.Append(nil))+string(one.Append(nil))+"between"+string(two.Append(nil)))
	write("frames/peer/b.dat", "0003800100000008000000010101020000\n")
	write("vectors/pysomeip/c.json", `{"a": [{"bytes": "00 04 8001 00000008 00000001 01010200"}], "n": 1}`)

	require.Len(t, corpus.Messages(t, 10, nil), 4)
	require.Len(t, corpus.Messages(t, 2, nil), 2)
	require.Equal(t, [][]byte{two.Append(nil)}, corpus.Messages(t, 10, func(m someip.Message) bool { return m.Service == 2 }))
	require.Len(t, corpus.Texts(t, "vectors"), 1)
	require.Len(t, corpus.Files(t, "pcap", 10), 0, "too long")
}
