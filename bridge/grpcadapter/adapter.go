package grpcadapter

import (
	"context"

	"carisma.dev/gateway/bridge"
)

// Network is where the table attaches the adapter: the gRPC side of the mesh.
var Network = bridge.Network{Protocol: bridge.GRPC}

// Adapter is the adapter of the gRPC side of the mesh: a [Server] that exposes
// and an [Importer] that imports.
type Adapter struct {
	*Server
	*Importer
}

var _ bridge.Adapter = Adapter{}

// Import implements [bridge.Adapter].
func (a Adapter) Import(ctx context.Context, offers chan<- bridge.Offer) error {
	return a.Importer.Import(ctx, offers)
}

// Expose implements [bridge.Adapter].
func (a Adapter) Expose(ctx context.Context, inst bridge.Instance, svc bridge.Service) error {
	return a.Server.Expose(ctx, inst, svc)
}

// SetCatalogue tells both sides what is in the mesh.
func (a Adapter) SetCatalogue(entries []CatalogueEntry) {
	a.Server.SetCatalogue(entries)
	a.Importer.SetCatalogue(entries)
}
