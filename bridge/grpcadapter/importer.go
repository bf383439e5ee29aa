package grpcadapter

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	protopb "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/opaque"
	"carisma.dev/gateway/codegen/proto"
)

// ImporterConfig configures an [Importer].
type ImporterConfig struct {
	// Egress is the gRPC target of the node's egress listener, such as
	// unix:/run/carisma/egress.sock.
	Egress string
	// Wanted chooses what is imported beside the gRPC services, by their entries:
	// of services on other networks, those that may be exposed here. Nil: none.
	Wanted func(CatalogueEntry) bool
	Logger *slog.Logger // nil for none
}

// Importer imports the gRPC services of the mesh, and others that are wanted: it calls them through the
// node's egress listener, under their mesh names. Where such a service runs, and
// that it moves, is the mesh's business.
type Importer struct {
	conn   *grpc.ClientConn
	wanted func(CatalogueEntry) bool
	log    *slog.Logger

	mu      sync.Mutex
	entries []CatalogueEntry
	changed chan struct{} // closed with each new catalogue
}

// NewImporter returns an importer that knows of no service yet.
func NewImporter(cfg ImporterConfig) (*Importer, error) {
	conn, err := grpc.NewClient(cfg.Egress,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec), grpc.MaxCallRecvMsgSize(MaxMessageSize)),
		grpc.WithStaticStreamWindowSize(windowSize),
		grpc.WithStaticConnWindowSize(16*windowSize),
		// The listener is on this machine: when it comes back it is found at once.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond,
			},
			MinConnectTimeout: time.Second,
		}),
		grpc.WithIdleTimeout(0),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, fmt.Errorf("grpcadapter: egress %q: %w", cfg.Egress, err)
	}
	i := &Importer{conn: conn, wanted: cfg.Wanted, log: cfg.Logger, changed: make(chan struct{})}
	if i.log == nil {
		i.log = slog.New(slog.DiscardHandler)
	}
	if i.wanted == nil {
		i.wanted = func(CatalogueEntry) bool { return false }
	}
	return i, nil
}

// Close closes the connection to the egress listener; calls that run fail.
func (i *Importer) Close() error { return i.conn.Close() }

// SetCatalogue tells what is in the mesh. It keeps the entries; nobody may change them.
func (i *Importer) SetCatalogue(entries []CatalogueEntry) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.entries = entries
	close(i.changed)
	i.changed = make(chan struct{})
}

func (i *Importer) catalogue() ([]CatalogueEntry, <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.entries, i.changed
}

// Import implements [bridge.Adapter]: it offers the instances that are gRPC
// services at their origin, or wanted, and whose descriptors are known.
func (i *Importer) Import(ctx context.Context, offers chan<- bridge.Offer) error {
	imp := importing{importer: i, offered: map[string]CatalogueEntry{}, sets: map[string]*proto.Set{}}
	for {
		entries, changed := i.catalogue()
		for _, o := range imp.diff(entries) {
			select {
			case offers <- o:
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// importing is the state of one run of Import.
type importing struct {
	importer *Importer
	offered  map[string]CatalogueEntry // by mesh name, those that are up
	sets     map[string]*proto.Set     // by descriptor set
}

// diff returns the offers that bring what was offered to a new catalogue. An
// instance that moved to another node stays as it is.
func (imp *importing) diff(entries []CatalogueEntry) []bridge.Offer {
	now := map[string]CatalogueEntry{}
	for _, e := range entries {
		if len(e.Descriptors) == 0 || e.Origin.Protocol != bridge.GRPC && !imp.importer.wanted(e) {
			continue
		}
		if other, ok := now[e.Name]; !ok || e.Up && (!other.Up || e.Since.Before(other.Since)) {
			now[e.Name] = e // of replicas the one that is up longest
		}
	}
	var offers []bridge.Offer
	for name, was := range imp.offered {
		is, ok := now[name]
		if ok && is.Up && string(is.Descriptors) == string(was.Descriptors) {
			continue
		}
		o := bridge.Offer{Instance: imp.instance(was), Reason: is.Reason, Since: is.Since}
		switch {
		case !ok:
			o.Reason, o.Since = "it was removed from the mesh", time.Now()
		case is.Up:
			o.Reason = "its interface changed"
		}
		offers = append(offers, o)
		delete(imp.offered, name)
	}
	for name, e := range now {
		if _, ok := imp.offered[name]; ok || !e.Up {
			continue
		}
		inst := imp.instance(e)
		if inst.Interface == nil {
			continue
		}
		svc := newRemote(imp.importer.conn, inst)
		offers = append(offers, bridge.Offer{Instance: inst, Service: svc, Since: e.Since})
		imp.offered[name] = e
	}
	return offers
}

// instance returns the instance of an entry, without an interface where its
// descriptors do not describe one.
func (imp *importing) instance(e CatalogueEntry) bridge.Instance {
	inst := bridge.Instance{Name: e.Instance, Origin: e.Origin, Descriptors: e.Descriptors}
	if e.Interface == opaque.Name {
		inst.Interface = opaque.Interface
		return inst
	}
	set, ok := imp.sets[string(e.Descriptors)]
	if !ok {
		var err error
		if set, err = readDescriptors(e.Descriptors); err != nil {
			imp.importer.log.Error("descriptors refused", "name", e.Name, "error", err)
		}
		imp.sets[string(e.Descriptors)] = set
	}
	if set != nil {
		inst.Interface = set.Interface(e.Interface)
	}
	return inst
}

func readDescriptors(raw []byte) (*proto.Set, error) {
	fds := &descriptorpb.FileDescriptorSet{}
	if err := protopb.Unmarshal(raw, fds); err != nil {
		return nil, err
	}
	return proto.FromDescriptors(fds)
}
