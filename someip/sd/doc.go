// Package sd implements SOME/IP service discovery: the codec of its messages,
// and Machine, the whole discovery state of one network as a pure function of
// what happens and of time.
//
// Neither does I/O, reads a clock or starts a goroutine. The owner of a Machine
// feeds it datagrams, wishes and the time, and carries out the actions that it
// returns; see Machine.
//
// Rule ids such as SD-1, RB-4 or SUB-6 in the comments name the requirements
// that docs/conformance.md lists.
package sd
