// Package e2e implements the AUTOSAR end-to-end protection profiles 1, 2, 4, 5,
// 6, 7, 11, 22 and 44: a [Protector] writes counters and checksums, a [Checker]
// judges them.
//
// Both work on plain bytes ([Protector.Protect], [Checker.Check]) and on whole
// SOME/IP messages ([Protector.AppendMessage], [Checker.CheckMessage]). Of a
// message the part from the Request ID on is protected, so client and session
// must be final before it is protected, and a message that is passed on under
// other ids must be checked, stripped and protected anew. The protection is
// applied before segmentation and checked after reassembly (TP-12).
//
// A protector or checker holds the state of one data stream: one event, or one
// method with one peer. It must not be used concurrently. Nothing allocates but
// the error of a message that fails the check.
//
// End-to-end protection finds faults, not attackers: whoever can send can also
// compute checksums.
package e2e
