package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"carisma.dev/gateway/mesh/api/meshv1"
)

// maxStored bounds the descriptor sets kept on disk.
const maxStored = 1024

// descriptorStore keeps descriptor sets by the hash of their bytes: of services
// on other nodes, so that they are fetched once, and are at hand while the
// control plane is away.
type descriptorStore struct {
	dir string

	mu   sync.Mutex
	sets map[string][]byte
}

func openDescriptors(state string) (*descriptorStore, error) {
	d := &descriptorStore{dir: filepath.Join(state, "descriptors"), sets: map[string][]byte{}}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, err
	}
	return d, d.prune()
}

// prune starts the cache anew once it is full: what is needed is fetched again.
func (d *descriptorStore) prune() error {
	entries, err := os.ReadDir(d.dir)
	if err != nil || len(entries) < maxStored {
		return err
	}
	for _, e := range entries {
		err = errors.Join(err, os.Remove(filepath.Join(d.dir, e.Name())))
	}
	return err
}

// hashOf returns the SHA-256 of a descriptor set in hex.
func hashOf(set []byte) string {
	sum := sha256.Sum256(set)
	return hex.EncodeToString(sum[:])
}

// get returns the descriptor set, from memory, disk or the control plane.
func (d *descriptorStore) get(ctx context.Context, registry meshv1.ServiceRegistryClient, hash string) ([]byte, error) {
	if set, ok := d.stored(hash); ok {
		return set, nil
	}
	path, ok := d.path(hash)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := registry.GetDescriptors(ctx, &meshv1.GetDescriptorsRequest{Hash: hash})
	if err != nil {
		return nil, err
	}
	set := resp.GetDescriptorSet()
	if !ok || hashOf(set) != hash {
		return nil, errors.New("the control plane answered with another descriptor set")
	}
	// A torn file is found by its hash, so it need not be forced to the disk.
	return d.keep(hash, set), os.WriteFile(path, set, 0o600)
}

// stored returns a descriptor set from memory or disk.
func (d *descriptorStore) stored(hash string) ([]byte, bool) {
	if set, ok := d.have(hash); ok {
		return set, true
	}
	path, ok := d.path(hash)
	if !ok {
		return nil, false
	}
	set, err := os.ReadFile(path)
	if err != nil || hashOf(set) != hash {
		return nil, false
	}
	return d.keep(hash, set), true
}

func (d *descriptorStore) have(hash string) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	set, ok := d.sets[hash]
	return set, ok
}

func (d *descriptorStore) keep(hash string, set []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sets[hash] = set
	return set
}

// path returns where a set is stored; false if the text is no hash.
func (d *descriptorStore) path(hash string) (string, bool) {
	raw, err := hex.DecodeString(hash)
	return filepath.Join(d.dir, hash), err == nil && len(raw) == sha256.Size
}
