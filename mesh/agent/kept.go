package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/mesh/api/meshv1"
)

// keptFile has the services of the mesh as the control plane told them last, so
// that a node that starts while it is away knows them: a WatchServicesResponse.
const keptFile = "mesh.kept"

// keep notes what has to be kept.
func (a *Agent) keep(services []Service) {
	a.latest.Store(&services)
	a.keeper.Changed()
}

func (a *Agent) kept() ([]byte, error) {
	all := &meshv1.WatchServicesResponse{Snapshot: true}
	for _, s := range *a.latest.Load() {
		all.Set = append(all.Set, s.MeshService)
	}
	return proto.Marshal(all)
}

// recall reads what an earlier run kept. Without it the node knows nothing until
// the control plane answers, which is no error.
func (a *Agent) recall() error {
	path := filepath.Join(a.cfg.State, keptFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	all := &meshv1.WatchServicesResponse{}
	if err := proto.Unmarshal(data, all); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, s := range all.GetSet() {
		a.held[serviceKey{s.GetService().GetName(), s.GetNodeId()}] = a.unseen(s)
	}
	a.holding = true
	return nil
}

// unseen returns a kept service as it is for a node that just started: what the
// node itself bridges it has yet to find.
func (a *Agent) unseen(s *meshv1.MeshService) *meshv1.MeshService {
	in := s.GetService()
	if s.GetNodeName() != a.cfg.Name || in.GetOrigin().GetProtocol() == meshv1.Protocol_GRPC ||
		in.GetState() != meshv1.InstanceState_INSTANCE_UP {
		return s
	}
	in.State, in.Since = meshv1.InstanceState_INSTANCE_DOWN, timestamppb.New(time.Now())
	in.Reason = "the gateway of node " + a.cfg.Name + " has not seen it since it came back"
	return s
}

// recalled tells what an earlier run kept.
func (a *Agent) recalled() {
	if !a.holding || a.cfg.OnServices == nil {
		return
	}
	services := make([]Service, 0, len(a.held))
	for _, s := range a.held {
		known := Service{MeshService: s}
		known.Descriptors = a.descriptorsOf(known)
		services = append(services, known)
	}
	sortServices(services)
	a.cfg.OnServices(services)
}
