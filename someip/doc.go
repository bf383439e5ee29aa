// Package someip implements the SOME/IP wire format: the message header, message
// types, return codes, well-known ids and magic cookies.
//
// It does no I/O, takes no clock and starts no goroutine; all its functions may
// be called concurrently. Parsing does not allocate: a parsed message is a view
// of the bytes it was read from. All multi-byte fields of the header are big
// endian.
//
// Rule ids such as HDR-1 in the comments name the requirements that
// docs/conformance.md lists.
package someip
