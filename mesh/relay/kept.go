package relay

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/mesh/durable"
)

// kept is what Envoy acknowledged last, so that one that restarts while the
// control plane is away is as it was. It survives the gateway in a file.
type kept struct {
	path   string          // empty: in memory only
	keeper *durable.Keeper // of the file, nil without one

	mu     sync.Mutex
	nodeID string
	types  map[string]map[string]*discoveryv3.Resource // by type and name
}

func newKept(path string, log *slog.Logger) *kept {
	k := &kept{path: path, types: map[string]map[string]*discoveryv3.Resource{}}
	if path != "" {
		k.keeper = durable.NewKeeper(path, k.marshal, func(err error) { log.Error("what envoy acknowledged is not kept", "error", err) })
	}
	return k
}

// acknowledged takes a delta response that Envoy accepted.
func (k *kept) acknowledged(nodeID string, msg []byte) error {
	resp := &discoveryv3.DeltaDiscoveryResponse{}
	if err := proto.Unmarshal(msg, resp); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.nodeID != nodeID {
		k.nodeID = nodeID
		clear(k.types)
	}
	k.take(resp)
	if k.keeper != nil {
		k.keeper.Changed()
	}
	return nil
}

func (k *kept) take(resp *discoveryv3.DeltaDiscoveryResponse) {
	set := k.types[resp.GetTypeUrl()]
	if set == nil {
		set = map[string]*discoveryv3.Resource{}
		k.types[resp.GetTypeUrl()] = set
	}
	for _, r := range resp.GetResources() {
		set[r.GetName()] = r
	}
	// Envoy keeps the endpoints of a resource that is removed; so do we.
	if resp.GetTypeUrl() != endpointType {
		for _, name := range resp.GetRemovedResources() {
			delete(set, name)
		}
	}
}

// has tells whether there is anything for the node.
func (k *kept) has(nodeID string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.nodeID == nodeID && len(k.types[listenerType]) > 0
}

// answer returns the response to a request: all of the type, or what it names. A
// name that is not kept is told to be gone, so that nothing waits for it.
func (k *kept) answer(req *discoveryv3.DeltaDiscoveryRequest, nonce string) *discoveryv3.DeltaDiscoveryResponse {
	k.mu.Lock()
	defer k.mu.Unlock()
	resp := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: req.GetTypeUrl(), Nonce: nonce}
	set := k.types[req.GetTypeUrl()]
	names := req.GetResourceNamesSubscribe()
	if len(names) == 0 || slices.Contains(names, "*") {
		names = slices.Sorted(maps.Keys(set))
	}
	for _, name := range names {
		if r := set[name]; r != nil {
			resp.Resources = append(resp.Resources, r)
		} else {
			resp.RemovedResources = append(resp.RemovedResources, name)
		}
	}
	return resp
}

// The file is a sequence of fields of bytes: 1 the node id, 2 a
// DeltaDiscoveryResponse for each type.
const (
	nodeField protowire.Number = 1
	typeField protowire.Number = 2
)

// marshal holds no lock while it encodes, which takes milliseconds for hundreds of
// services: ACKs would wait for it.
func (k *kept) marshal() ([]byte, error) {
	nodeID, types := k.snapshot()
	b := protowire.AppendTag(nil, nodeField, protowire.BytesType)
	b = protowire.AppendString(b, nodeID)
	for _, resp := range types {
		slices.SortFunc(resp.GetResources(), func(x, y *discoveryv3.Resource) int { return cmp.Compare(x.GetName(), y.GetName()) })
		raw, err := proto.Marshal(resp)
		if err != nil {
			return nil, err
		}
		b = protowire.AppendTag(b, typeField, protowire.BytesType)
		b = protowire.AppendBytes(b, raw)
	}
	return b, nil
}

// snapshot returns what is kept, a response for each type. Nobody changes a resource
// that is kept.
func (k *kept) snapshot() (nodeID string, types []*discoveryv3.DeltaDiscoveryResponse) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, typeURL := range slices.Sorted(maps.Keys(k.types)) {
		types = append(types, &discoveryv3.DeltaDiscoveryResponse{
			TypeUrl: typeURL, Resources: slices.Collect(maps.Values(k.types[typeURL])),
		})
	}
	return k.nodeID, types
}

// load reads the file of an earlier run. What cannot be read is as good as nothing.
func (k *kept) load() error {
	if k.path == "" {
		return nil
	}
	data, err := os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	err = fields(data, func(n protowire.Number, v []byte) error {
		switch n {
		case nodeField:
			k.nodeID = string(v)
		case typeField:
			resp := &discoveryv3.DeltaDiscoveryResponse{}
			if err := proto.Unmarshal(v, resp); err != nil {
				return err
			}
			k.take(resp)
		default:
		}
		return nil
	})
	if err != nil {
		k.nodeID = ""
		clear(k.types)
		return fmt.Errorf("%s: %w", k.path, err)
	}
	return nil
}
