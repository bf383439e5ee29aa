// Package vsomeip reads the JSON configurations of vsomeip into a plain type, as
// far as they say what happens on the network.
//
// The reader is strict: what is no JSON, an unknown key, a value of the wrong kind
// or out of range is an error with its place. Numbers and booleans may be text, as
// vsomeip has them, and numbers hexadecimal. A folder is read as one configuration.
//
// [Parameters] names every key, with the setting that does the same here; it is also
// docs/vsomeip-config.md.
package vsomeip

//go:generate go run ./internal/docgen ../../docs/vsomeip-config.md
