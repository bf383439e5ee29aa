package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/durable"
)

const identityFile = "node.json"

type storedIdentity struct {
	Name  string `json:"name"`
	ID    string `json:"id"`
	Epoch uint64 `json:"epoch"`
}

// loadIdentity returns what an earlier run of the same node stored.
func loadIdentity(dir, name string) (api.Identity, error) {
	path := filepath.Join(dir, identityFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return api.Identity{}, nil
	}
	if err != nil {
		return api.Identity{}, err
	}
	var s storedIdentity
	if err := json.Unmarshal(data, &s); err != nil {
		return api.Identity{}, fmt.Errorf("%s: %w", path, err)
	}
	if s.Name != name {
		return api.Identity{}, fmt.Errorf("%s: the state directory is of node %q, not of %q", path, s.Name, name)
	}
	return api.Identity{ID: s.ID, Epoch: s.Epoch}, nil
}

func storeIdentity(dir, name string, id api.Identity) error {
	data, err := json.Marshal(storedIdentity{Name: name, ID: id.ID, Epoch: id.Epoch})
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, identityFile), data)
}

// boot identifies the machine and its boot: a newer boot of the same machine may
// take the place of a node whose lease still runs.
type boot struct {
	machine, id string
	time        int64 // nanoseconds of Unix time
}

func thisBoot() boot {
	b := boot{machine: line("/etc/machine-id"), id: line("/proc/sys/kernel/random/boot_id")}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return b
	}
	for l := range strings.Lines(string(stat)) {
		if text, ok := strings.CutPrefix(l, "btime "); ok {
			if s, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
				b.time = s * int64(time.Second)
			}
		}
	}
	return b
}

// line returns the content of a small file, or nothing where there is none.
func line(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
