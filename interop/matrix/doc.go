// Package matrix runs our SOME/IP stack against every foreign one, as client and as
// server, in network namespaces, and writes down what worked for docs/interop.md.
//
// A stack takes part as a program that speaks the protocol of lines below, ours too
// (see [Stack]): so each of them can be started in any order, stopped and killed, and
// what a pair of programs is asked to do does not depend on who they are.
//
// All programs offer or use one service (see service.go). They are told what to be by
// flags, --name value:
//
//	role          serve, or use
//	unicast       the own address, and
//	prefix-len    the length of its subnet
//	peer          the address of the other side, for stacks that must know it
//	device        the network device
//	sd-multicast  the multicast group of service discovery
//	multicast     the multicast group of the events that have one
//	groups        the eventgroups that are offered or subscribed to: 1,2,5
//
// and then take commands on the standard input, a line each:
//
//	call udp|tcp METHOD PAYLOAD   use: prints answer CODE PAYLOAD, or failed REASON
//	send udp|tcp METHOD PAYLOAD   use: a fire-and-forget request
//	notify EVENT PAYLOAD          serve: sends an event
//
// Numbers are hexadecimal without prefix, payloads too; an empty payload is "-". The
// end of the input ends the program in good order: what it offers is withdrawn. What
// it says on the standard output:
//
//	ready                        the program runs
//	up, down                     use: the service came, went
//	told PAYLOAD                 serve: a fire-and-forget request came
//	event EVENT CHECK PAYLOAD    use: an event came; CHECK is "ok" if it is protected end to
//	                             end and correct, "-" if it is not protected
//	stats JSON                   ours only, at the end: a [Counts]
package matrix
