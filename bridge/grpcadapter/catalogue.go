package grpcadapter

import (
	"time"

	"carisma.dev/gateway/bridge"
)

// CatalogueEntry is one instance of the mesh, on whatever node.
type CatalogueEntry struct {
	Name      string // mesh name
	Interface string // full name
	Instance  string // exact instance name
	Up        bool
	Reason    string    // why it is not up
	Since     time.Time // of the state
	// Descriptors is the serialised google.protobuf.FileDescriptorSet of the
	// interface, empty if it is not known. Nobody may change it.
	Descriptors []byte
	Origin      bridge.Origin
	NodeName    string // node that has it
}
