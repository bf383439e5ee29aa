package bridge

import "fmt"

// Policy decides whether an instance may be exposed on a network. It returns
// the reason why not, or "" where it may. The loop rules of the table come
// first and hold whatever a policy says.
type Policy func(inst Instance, on Network) (denied string)

// DefaultPolicy allows everything but an exposure on another network of the
// instance's own protocol: that takes a mapping of ids and must be configured.
func DefaultPolicy(inst Instance, on Network) (denied string) {
	if inst.Origin.Protocol == on.Protocol {
		return fmt.Sprintf("it is a %s service: exposing it on another %[1]s network must be configured", on.Protocol)
	}
	return ""
}

// NotExposableError says that an instance cannot be exposed on a network
// whatever happens later.
type NotExposableError struct {
	Reason string
}

func (e *NotExposableError) Error() string { return e.Reason }

// StandbyError says that the gateway of another node exposes the instance on the
// network already: this one takes over when that ends.
type StandbyError struct {
	Node string
	Over <-chan struct{} // closed when the other one's exposure ended or changed
}

func (e *StandbyError) Error() string {
	return fmt.Sprintf("the gateway of node %s exposes it here", e.Node)
}

// NotYetError says that what an exposure needs is not there, and when to try again.
type NotYetError struct {
	Err  error
	Over <-chan struct{} // closed when it may be there
}

func (e *NotYetError) Error() string { return e.Err.Error() }

// Unwrap returns what is not there.
func (e *NotYetError) Unwrap() error { return e.Err }

// loopRule returns why an instance imported through one network must not go out
// on another. Nothing imported from a network is exposed on that same network,
// by this gateway or another, and nothing leaves by the way it came.
func loopRule(inst Instance, via, to Network) (denied string) {
	switch {
	case via == to:
		return "it was imported from there"
	case inst.Origin.On(to):
		return "it comes from that network, seen there by node " + inst.Origin.Node
	}
	return ""
}
