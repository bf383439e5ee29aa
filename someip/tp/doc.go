// Package tp implements SOME/IP-TP: messages that do not fit a datagram are sent
// as segments ([Rule.Segment]) and put together again ([Reassembler]).
//
// It does no I/O and takes no clock: the time comes in as an argument, and the gap
// between segments is for the sender to keep. Rule ids such as TP-7 name the
// requirements that docs/conformance.md lists.
package tp
