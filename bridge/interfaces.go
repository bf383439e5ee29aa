package bridge

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"carisma.dev/gateway/codegen/model"
)

// KnownInterface is a service interface with its descriptor set.
type KnownInterface struct {
	*model.Interface
	Descriptors []byte // serialised google.protobuf.FileDescriptorSet
}

// Interfaces is the set of the service interfaces that a gateway knows: those
// of its files and those whose descriptors arrive from the mesh. It only grows.
type Interfaces struct {
	mu       sync.RWMutex
	byName   map[string]KnownInterface
	bySOMEIP map[someipKey]KnownInterface
	grown    chan struct{} // closed when the set grows
}

type someipKey struct {
	service uint16
	major   uint32
}

// NewInterfaces returns an empty set.
func NewInterfaces() *Interfaces {
	return &Interfaces{
		byName:   map[string]KnownInterface{},
		bySOMEIP: map[someipKey]KnownInterface{},
		grown:    make(chan struct{}),
	}
}

// Add adds an interface. An interface that is known already stays as it is; one
// whose SOME/IP ids another has is refused.
func (s *Interfaces) Add(iface *model.Interface, descriptors []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := iface.FullName()
	if _, ok := s.byName[name]; ok {
		return nil
	}
	known := KnownInterface{Interface: iface, Descriptors: descriptors}
	if iface.SOMEIP != nil {
		k := someipKey{iface.SOMEIP.ServiceID, iface.Version.Major}
		if other, ok := s.bySOMEIP[k]; ok {
			return fmt.Errorf("bridge: %s and %s both have SOME/IP service id 0x%04x, major version %d",
				other.FullName(), name, k.service, k.major)
		}
		s.bySOMEIP[k] = known
	}
	s.byName[name] = known
	close(s.grown)
	s.grown = make(chan struct{})
	return nil
}

// ByName returns the interface with a full name.
func (s *Interfaces) ByName(fullName string) (KnownInterface, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k, ok := s.byName[fullName]
	return k, ok
}

// BySOMEIP returns the interface with a SOME/IP service id and major version.
func (s *Interfaces) BySOMEIP(service uint16, major uint32) (KnownInterface, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k, ok := s.bySOMEIP[someipKey{service, major}]
	return k, ok
}

// OnSOMEIP returns the interfaces that have SOME/IP ids, in no order.
func (s *Interfaces) OnSOMEIP() []KnownInterface {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.bySOMEIP))
}

// Grown returns a channel that is closed when the set grows. Take it before
// looking something up, then nothing is missed.
func (s *Interfaces) Grown() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.grown
}
