package store

import (
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// Defaults returns the mesh name of the default instance of each interface.
func (s *Store) Defaults() (map[string]string, error) {
	defaults := map[string]string{}
	err := s.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketDefaults).ForEach(func(k, v []byte) error {
			defaults[string(k)] = string(v)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return defaults, nil
}

// PutDefaults stores the defaults of the given interfaces, all or nothing.
func (s *Store) PutDefaults(defaults map[string]string) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketDefaults)
		for iface, name := range defaults {
			if err := b.Put([]byte(iface), []byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
