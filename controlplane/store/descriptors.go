package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Bounds of the descriptor sets that are kept.
const (
	MaxDescriptorSet  = 4 << 20
	MaxDescriptorSets = 4096
)

// ErrFull means that the store holds as many descriptor sets as it may.
var ErrFull = errors.New("store: too many descriptor sets")

// ErrTooLarge means that a descriptor set is larger than MaxDescriptorSet.
var ErrTooLarge = errors.New("store: descriptor set too large")

// Hash returns the name that a descriptor set is stored under: its SHA-256 in hex.
func Hash(set []byte) string {
	sum := sha256.Sum256(set)
	return hex.EncodeToString(sum[:])
}

// PutDescriptors stores a descriptor set and returns its hash. One that is there
// already is not written again.
func (s *Store) PutDescriptors(set []byte) (string, error) {
	if len(set) > MaxDescriptorSet {
		return "", ErrTooLarge
	}
	hash := Hash(set)
	if has, err := s.has(hash); has || err != nil {
		return hash, err
	}
	// Nodes send many at their start: one write to the disk serves those that come
	// together.
	err := s.db.Batch(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketDescriptors)
		if b.Stats().KeyN >= MaxDescriptorSets {
			return ErrFull
		}
		return b.Put([]byte(hash), set)
	})
	switch {
	case errors.Is(err, ErrFull):
		return "", ErrFull
	case err != nil:
		return "", fmt.Errorf("store: %w", err)
	}
	return hash, nil
}

func (s *Store) has(hash string) (bool, error) {
	set, err := s.Descriptors(hash)
	return set != nil, err
}

// Descriptors returns the descriptor set with the given hash, nil if there is none.
func (s *Store) Descriptors(hash string) ([]byte, error) {
	var set []byte
	err := s.db.View(func(tx *bolt.Tx) error {
		if v := tx.Bucket(bucketDescriptors).Get([]byte(hash)); v != nil {
			set = append([]byte{}, v...) // v ends with the transaction
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return set, nil
}
