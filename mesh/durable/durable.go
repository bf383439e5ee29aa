// Package durable writes the small files that a node must not lose.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile replaces a file whole or not at all, and for good once it returns.
// Only the owner may read it.
func WriteFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
