// Package seed finds inputs for fuzz targets in the corpus: the captures, frames and
// vectors of other implementations in the directory that CARISMA_CORPUS names. Where
// there is no corpus it finds none, and a target has the inputs it wrote itself. Nothing
// of the corpus becomes a file here: what the fuzzer keeps of it stays in Go's cache.
package seed

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carisma.dev/gateway/someip"
)

// root returns the directory of the corpus, that beside the module without other word.
func root(tb testing.TB) string {
	tb.Helper()
	if dir := os.Getenv("CARISMA_CORPUS"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for filepath.Dir(dir) != dir {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "..", "shared", "corpus")
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// Files returns the content of the files of at most limit bytes below a directory of the
// corpus whose names end in one of the endings; all without one.
func Files(tb testing.TB, dir string, limit int, endings ...string) (files [][]byte) {
	tb.Helper()
	top := filepath.Join(root(tb), dir)
	if _, err := os.Stat(top); err != nil {
		tb.Logf("no seeds of the corpus (set CARISMA_CORPUS): %v", err)
		return nil
	}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !ends(path, endings) {
			return err
		}
		b, err := os.ReadFile(path) //nolint:gosec // below the corpus
		if err == nil && len(b) <= limit {
			files = append(files, b)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return files
}

func ends(path string, endings []string) bool {
	for _, e := range endings {
		if strings.HasSuffix(path, e) {
			return true
		}
	}
	return len(endings) == 0
}

// Messages returns the messages in the captures, frames and vectors that choose wants (nil:
// all): one of each message id, type, return code and size, and at most limit. They are
// found by their header, as the payload of a frame is contiguous in a capture; what is
// taken for a message and is none does no harm as a seed.
func Messages(tb testing.TB, limit int, choose func(someip.Message) bool) (messages [][]byte) {
	tb.Helper()
	type kind struct {
		service, method uint16
		mt              someip.MessageType
		code            someip.ReturnCode
		size            int
	}
	seen := map[kind]bool{}
	look := func(b []byte) {
		for len(b) >= someip.HeaderSize && len(messages) < limit {
			m, rest, ok := message(b)
			k := kind{m.Service, m.Method, m.Type, m.Code, len(m.Payload)}
			if !ok {
				b = b[1:]
				continue
			}
			if !seen[k] && (choose == nil || choose(m)) {
				seen[k] = true
				messages = append(messages, bytes.Clone(b[:len(b)-len(rest)]))
			}
			b = rest
		}
	}
	for _, b := range Files(tb, "frames", 1<<20, ".dat") {
		if raw, err := hex.DecodeString(string(bytes.TrimSpace(b))); err == nil {
			look(raw)
		}
	}
	for _, b := range Texts(tb, "vectors/pysomeip") {
		look(b)
	}
	for _, b := range Files(tb, "pcap", 1<<20, ".pcap", ".pcapng") {
		look(b)
	}
	return messages
}

// message takes one that begins with b, if it looks like one: more than a header by itself.
func message(b []byte) (m someip.Message, rest []byte, ok bool) {
	const longest = 1500
	if b[12] != someip.ProtocolVersion || binary.BigEndian.Uint32(b[4:]) > longest {
		return m, nil, false
	}
	m, rest, err := someip.ParseMessage(b)
	return m, rest, err == nil && m.Service != 0 && m.Validate() == nil
}

// Texts returns the bytes of every hexadecimal text of two bytes or more in the JSON files
// below a directory.
func Texts(tb testing.TB, dir string) (all [][]byte) {
	tb.Helper()
	for _, file := range Files(tb, dir, 1<<20, ".json") {
		var v any
		if err := json.Unmarshal(file, &v); err != nil {
			tb.Fatal(err)
		}
		all = texts(v, all)
	}
	return all
}

func texts(v any, all [][]byte) [][]byte {
	switch v := v.(type) {
	case string:
		if b, err := hex.DecodeString(strings.ReplaceAll(v, " ", "")); err == nil && len(b) >= 2 {
			all = append(all, b)
		}
	case []any:
		for _, e := range v {
			all = texts(e, all)
		}
	case map[string]any:
		for _, e := range v {
			all = texts(e, all)
		}
	}
	return all
}
