// Package peers finds the foreign programs of interop tests. They are made ready
// by get.sh, and the tests run where CARISMA_INTEROP is 1, as make interop and
// make test have it.
package peers

import (
	"os"
	"testing"
)

// Peer is a foreign program or set of programs; its value is the variable of the
// environment that holds its path.
type Peer string

// The peers, as make interop hands them to the tests.
const (
	Envoy   Peer = "CARISMA_ENVOY"   // the program
	Grpcurl Peer = "CARISMA_GRPCURL" // the program
	Python  Peer = "CARISMA_PYTHON"  // the interpreter, with pysomeip, scapy and grpcio
	Vsomeip Peer = "CARISMA_VSOMEIP" // the directory of the programs of interop/vsomeip
)

// Need returns the paths of peers, in their order. Where interop tests are not
// asked for, or one of the peers is not there, the test is skipped with the
// reason.
func Need(tb testing.TB, peers ...Peer) []string {
	tb.Helper()
	if os.Getenv("CARISMA_INTEROP") != "1" {
		tb.Skip("interop tests run with make interop (CARISMA_INTEROP=1)")
	}
	paths := make([]string, len(peers))
	for i, p := range peers {
		paths[i] = os.Getenv(string(p))
		if paths[i] == "" {
			tb.Skipf("%s is not set: interop/peers/get.sh makes the peer ready", p)
		}
		if _, err := os.Stat(paths[i]); err != nil {
			tb.Skipf("%s: %v", p, err)
		}
	}
	return paths
}
