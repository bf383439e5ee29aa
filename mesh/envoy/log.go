package envoy

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

const (
	maxLog   = 4 << 20 // beyond it the log is kept once as .1 and started anew
	tailSize = 16 << 10
	tailKeep = 5
)

// openLog opens Envoy's log for appending and returns its size. Envoy writes to
// the file itself, not through the gateway, which it outlives.
func openLog(path string) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, 0, err
		}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// logTail returns why an Envoy ended: the last errors it logged since offset, or
// its last lines where it logged none.
func logTail(path string, offset int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil || end <= offset {
		return ""
	}
	from := max(offset, end-tailSize)
	data := make([]byte, end-from)
	n, err := f.ReadAt(data, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return summary(string(data[:n]))
}

func summary(text string) string {
	var all, bad []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		all = append(all, line)
		if strings.Contains(line, "[critical]") || strings.Contains(line, "[error]") {
			bad = append(bad, line)
		}
	}
	if len(bad) == 0 {
		bad = all
	}
	return strings.Join(bad[max(0, len(bad)-tailKeep):], "\n")
}
