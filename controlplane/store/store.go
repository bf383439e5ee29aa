// Package store keeps what the control plane must not forget over a restart:
// the nodes with their ids and epochs, the epoch counter, which instance of an
// interface is the default, and descriptor sets. Services are not kept: their
// nodes tell them anew (CAR-50).
package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

var (
	bucketMeta        = []byte("meta")
	bucketNodes       = []byte("nodes")
	bucketDefaults    = []byte("defaults")
	bucketDescriptors = []byte("descriptors")

	keyEpoch = []byte("epoch")
)

// lockTimeout is how long Open waits for another process to let the file go.
const lockTimeout = time.Second

// batchDelay is how long a descriptor set waits for others to be written with it.
const batchDelay = time.Millisecond

// Store is a bbolt file. It is safe for concurrent use.
type Store struct {
	db   *bolt.DB
	lost bool
}

// Open opens or creates the store at path. A file that is no store any more is
// set aside, as path.damaged, and an empty store takes its place: nodes prove
// their ids, so that a lost store costs nothing (CAR-50).
func Open(path string) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	db, err := open(path)
	damaged := isDamage(err)
	if damaged {
		if err := os.Rename(path, path+".damaged"); err != nil {
			return nil, fmt.Errorf("store: set damaged file aside: %w", err)
		}
		db, err = open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", path, err)
	}
	db.MaxBatchDelay = batchDelay
	s := &Store{db: db, lost: damaged}
	if err := s.init(); err != nil {
		return nil, errors.Join(fmt.Errorf("store: %w", err), db.Close())
	}
	return s, nil
}

func open(path string) (*bolt.DB, error) {
	return bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout})
}

func isDamage(err error) bool {
	return errors.Is(err, bolterrors.ErrInvalid) ||
		errors.Is(err, bolterrors.ErrChecksum) ||
		errors.Is(err, bolterrors.ErrVersionMismatch)
}

// init makes the buckets. Epochs rise over a lost store too (CAR-55), so those
// of a new one start at the time of its making, in milliseconds.
func (s *Store) init() error {
	return s.db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{bucketMeta, bucketNodes, bucketDefaults, bucketDescriptors} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(bucketMeta)
		if meta.Get(keyEpoch) != nil {
			return nil
		}
		return putUint(meta, keyEpoch, uint64(time.Now().UnixMilli()))
	})
}

// Close closes the file. The store must not be used after.
func (s *Store) Close() error { return s.db.Close() }

// Damaged reports whether Open found a file that it had to set aside.
func (s *Store) Damaged() bool { return s.lost }

func putUint(b *bolt.Bucket, key []byte, v uint64) error {
	return b.Put(key, binary.BigEndian.AppendUint64(nil, v))
}

func getUint(b *bolt.Bucket, key []byte) uint64 {
	v := b.Get(key)
	if len(v) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(v)
}

func putJSON(b *bolt.Bucket, key string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put([]byte(key), raw)
}
