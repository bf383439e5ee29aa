package runtime

import (
	"time"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

// InstanceKey names a service instance of one major version on a network.
type InstanceKey = someip.InstanceKey

// Filter selects instances: a key in which someip.AnyService, AnyInstance and
// AnyMajor match everything.
type Filter = someip.InstanceKey

func matches(k InstanceKey, f Filter) bool {
	if f.Service == someip.AnyService {
		f.Service = k.Service
	}
	return k.Matches(f)
}

// Endpoints is where an instance is reached. An invalid address means that it
// is not offered over that transport.
type Endpoints = sd.Endpoints

// LoadBalancing ranks instances of a service: those of the lowest Priority are
// preferred, and chosen among at random in proportion to their Weight.
type LoadBalancing = sd.LoadBalancing

// Availability tells that an instance appeared, changed or went.
type Availability struct {
	Key       InstanceKey
	Minor     uint32
	Endpoints Endpoints // those of the last offer, also when it went
	// Configuration are the items of the offer's configuration options.
	Configuration []string
	// LoadBalancing ranks the instance among those of its service; nil: its offer
	// does not.
	LoadBalancing *LoadBalancing
	Up            bool
	Reason        Reason    // why it is not up
	Since         time.Time // of this state
}
