package controlplane

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// watcherPatience is how long a watcher may leave a response lying before its
// stream is closed.
const watcherPatience = 5 * time.Second

// watcher is one WatchServices stream.
type watcher struct {
	stream grpc.ServerStreamingServer[meshv1.WatchServicesResponse]
	told   map[string]map[string]bool // mesh name → node ids that the watcher knows of
}

func (w *watcher) first(snap *registry.Snapshot) *meshv1.WatchServicesResponse {
	resp := &meshv1.WatchServicesResponse{Snapshot: true}
	for _, name := range slices.Sorted(maps.Keys(snap.Services)) {
		w.add(resp, name, snap.Services[name])
	}
	return resp
}

// changed makes the response for changes: instances that are, as they are now, and
// instances that the watcher knows and that are no more.
func (w *watcher) changed(snap *registry.Snapshot, changes registry.Changes) *meshv1.WatchServicesResponse {
	resp := &meshv1.WatchServicesResponse{}
	for _, name := range slices.Sorted(maps.Keys(changes.Services)) {
		before := w.told[name]
		delete(w.told, name)
		if s := snap.Services[name]; s != nil {
			w.add(resp, name, s)
		}
		for _, node := range slices.Sorted(maps.Keys(before)) {
			if !w.told[name][node] {
				resp.Removed = append(resp.Removed, &meshv1.ServiceKey{Name: name, NodeId: node})
			}
		}
	}
	return resp
}

func (w *watcher) add(resp *meshv1.WatchServicesResponse, name string, s *registry.Service) {
	nodes := map[string]bool{}
	for _, inst := range s.Instances {
		nodes[inst.Node.ID] = true
		resp.Set = append(resp.Set, meshService(inst))
	}
	w.told[name] = nodes
}

// send sends a response, or gives the watcher up if it takes too long.
func (w *watcher) send(resp *meshv1.WatchServicesResponse) error {
	sent := make(chan error, 1)
	go func() { sent <- w.stream.Send(resp) }() // ends with the stream at the latest
	patience := time.NewTimer(watcherPatience)
	defer patience.Stop()
	select {
	case err := <-sent:
		return err
	case <-patience.C:
		return status.Errorf(codes.ResourceExhausted, "the watcher took nothing for %v", watcherPatience)
	}
}
