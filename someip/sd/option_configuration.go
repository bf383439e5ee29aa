package sd

import (
	"fmt"
	"iter"
	"strings"
)

// ConfigurationOption returns a configuration option of the items, each
// "key=value", "key=" or "key". It fails with ErrRange for an item that is
// empty, longer than 255 bytes or has no valid key: printable ASCII without "=".
func ConfigurationOption(items ...string) (Option, error) {
	var data []byte
	for _, item := range items {
		key, _, _ := strings.Cut(item, "=")
		if len(item) > 0xFF || !validKey(key) {
			return Option{}, fmt.Errorf("configuration item %q: %w", item, ErrRange)
		}
		data = append(data, byte(len(item)))
		data = append(data, item...)
	}
	data = append(data, 0)
	if len(data) >= 0xFFFF {
		return Option{}, fmt.Errorf("configuration of %d bytes: %w", len(data), ErrRange)
	}
	return Option{Type: OptionConfiguration, Data: data}, nil
}

func validKey(key string) bool {
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7E {
			return false
		}
	}
	return key != ""
}

// Configuration returns the items of a configuration option, "key=value",
// "key=" or "key" each, in order. A key may be there more than once.
func (o *Option) Configuration() iter.Seq[string] {
	return func(yield func(string) bool) {
		if o.Type != OptionConfiguration {
			return
		}
		for b := o.Data; len(b) > 0 && b[0] != 0 && int(b[0]) < len(b); b = b[1+int(b[0]):] {
			if !yield(string(b[1 : 1+int(b[0])])) {
				return
			}
		}
	}
}

// parseConfiguration takes a sequence of strings, a length byte before each,
// that a length of 0 ends (case 40).
func (o *Option) parseConfiguration(b []byte) bool {
	o.Data = b
	for len(b) > 0 {
		n := int(b[0])
		if n == 0 {
			return true
		}
		if n >= len(b) {
			return false
		}
		b = b[1+n:]
	}
	return false
}
