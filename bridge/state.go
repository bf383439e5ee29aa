package bridge

import (
	"fmt"
	"time"
)

// State is what the table knows of one imported instance. It stays known after
// it went, so that callers can be told why and since when.
type State struct {
	Instance
	Via    Network // that it was imported from
	Up     bool
	Reason string // why it is not up
	Since  time.Time
}

// FromMesh tells that the instance came from the mesh and belongs to another
// node or to the node's file: the mesh knows it already.
func (s State) FromMesh() bool { return s.Via.Protocol == GRPC }

// ExposureState is how far an exposure is.
type ExposureState uint8

// The states of an exposure.
const (
	// Denied: rules or the interface do not allow it.
	Denied ExposureState = iota
	// Exposed: the instance is reachable there.
	Exposed
	// Failed: it will be tried again.
	Failed
	// Waiting: the instance is not up.
	Waiting
	// Standby: the gateway of another node exposes it there; this one takes over
	// when that ends.
	Standby
)

func (s ExposureState) String() string {
	switch s {
	case Denied:
		return "denied"
	case Exposed:
		return "exposed"
	case Failed:
		return "failed"
	case Waiting:
		return "waiting"
	case Standby:
		return "standby"
	default:
		return fmt.Sprintf("state %d", uint8(s))
	}
}

// Exposure is an instance on one network other than its own.
type Exposure struct {
	On     Network
	State  ExposureState
	Reason string // why it is denied, failed or on standby
	Since  time.Time
}

// Bridge is an imported instance and where it is exposed, or why not.
type Bridge struct {
	State
	Exposures []Exposure // in the order in which the adapters were attached
}
