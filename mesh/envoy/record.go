package envoy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
)

// record is the pid file: which Envoy a gateway started and with what, so that
// the next run of the gateway adopts it instead of ending calls that go through
// it.
type record struct {
	PID       int    `json:"pid"`
	Start     string `json:"start"` // see startTime
	NodeID    string `json:"node_id"`
	Bootstrap string `json:"bootstrap"` // SHA-256 of the file
	Program   string `json:"program"`
	LogLevel  string `json:"log_level"`
}

func readRecord(path string) (record, error) {
	var r record
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(data, &r)
}

func (r record) write(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// writeFile replaces path whole or not at all.
func writeFile(path string, data []byte) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
