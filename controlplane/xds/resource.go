// Package xds turns the views of the registry into Envoy resources and serves
// them to the nodes' proxies by ADS (CAR-14, 39).
//
// Its Cache stands behind go-control-plane's servers. It holds, for each node and
// type, the resources that the proxy should have, and for each stream what the
// proxy has and which names to look at again, so that a change costs what changed
// and not what there is. Nothing waits for a timer: a change goes out at once, or
// with the acknowledgement of the response that is on its way.
package xds

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// The resource types that a proxy of the mesh gets, in the order in which they go
// out: what refers comes after what it refers to.
var types = []string{
	resourcev3.ClusterType,
	resourcev3.EndpointType,
	resourcev3.ListenerType,
	resourcev3.RouteType,
}

// Resource is an immutable xDS resource that streams share.
type Resource struct {
	Name string
	Type string
	// Version is a digest of the content, so that a proxy that holds a resource
	// from an earlier run of the control plane is not sent it again (CAR-50).
	Version string
	any     *anypb.Any
	// takesAway: an assignment without endpoints.
	takesAway bool
}

// message is a resource or a part of one that knows its rules.
type message interface {
	proto.Message
	ValidateAll() error
}

// NewResource validates and encodes a resource. Envoy refuses a whole response
// for one bad resource, so none that breaks the rules of its type leaves here.
func NewResource(typeURL string, m message) (*Resource, error) {
	if err := m.ValidateAll(); err != nil {
		return nil, fmt.Errorf("xds: %s: %w", cachev3.GetResourceName(m), err)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("xds: %s: %w", cachev3.GetResourceName(m), err)
	}
	sum := sha256.Sum256(raw)
	return &Resource{
		Name:    cachev3.GetResourceName(m),
		Type:    typeURL,
		Version: hex.EncodeToString(sum[:8]),
		any:     &anypb.Any{TypeUrl: typeURL, Value: raw},
	}, nil
}

// pack validates a typed configuration and puts it into an Any.
func pack(m message) (*anypb.Any, error) {
	if err := m.ValidateAll(); err != nil {
		return nil, fmt.Errorf("xds: %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	packed := &anypb.Any{}
	err := anypb.MarshalFrom(packed, m, proto.MarshalOptions{Deterministic: true})
	return packed, err
}
