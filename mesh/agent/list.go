package agent

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// Instance is a service instance of this node, as one of its parts knows it.
type Instance struct {
	Interface   string // full name of the gRPC service
	Instance    string // exact instance name
	Origin      *meshv1.Origin
	Address     string // where the node's proxy reaches it: host:port or unix:path
	Descriptors []byte // serialised FileDescriptorSet, nil if unknown; it must not change
	Up          bool
	Reason      string // why it is not up
	Since       time.Time
	Replica     bool // interchangeable with every other instance of the name (CAR-52)
}

// Name returns the mesh name.
func (i Instance) Name() string { return model.MeshName(i.Interface, i.Instance) }

// list is what the node offers, and how much of it the control plane has.
type list struct {
	mu         sync.Mutex
	claims     map[string][]claim // by mesh name, in order of arrival
	shown      map[string]*meshv1.ServiceInstance
	sets       map[string][]byte // descriptor sets of shown, by hash
	leaving    map[string]meshv1.Leaving
	generation uint64
	dirty      map[string]struct{}
	refused    map[string]string

	change uint64        // number of the last change
	told   uint64        // the last change that the control plane confirmed
	news   chan struct{} // closed when change or told rises
}

// claim is an instance that one source has under a mesh name. Several sources may
// claim a name, such as two networks with the same service; one counts.
type claim struct {
	source string
	inst   Instance
}

func (l *list) init(now time.Time) {
	l.claims = map[string][]claim{}
	l.shown = map[string]*meshv1.ServiceInstance{}
	l.sets = map[string][]byte{}
	l.leaving = map[string]meshv1.Leaving{}
	l.dirty = map[string]struct{}{}
	l.refused = map[string]string{}
	// A later run of the node starts above the generations of this one.
	l.generation = uint64(now.UnixNano())
	l.news = make(chan struct{})
}

// Set adds or changes an instance of a source, such as the name of a network.
func (a *Agent) Set(source string, in Instance) {
	a.list.mu.Lock()
	defer a.list.mu.Unlock()
	a.list.set(source, in)
}

// Leave says how far the instance of a name is on its way out of the mesh, until
// the name is removed.
func (a *Agent) Leave(meshName string, step meshv1.Leaving) {
	l := &a.list
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving[meshName] = step
	l.show(meshName)
}

// Remove takes back an instance of a source. An instance that is gone for now is
// set with Up false instead, so that callers are told why.
func (a *Agent) Remove(source, meshName string) {
	a.list.mu.Lock()
	defer a.list.mu.Unlock()
	a.list.remove(source, meshName)
}

// SetServices makes the instances of a source exactly those given.
func (a *Agent) SetServices(source string, instances []Instance) {
	l := &a.list
	l.mu.Lock()
	defer l.mu.Unlock()
	keep := map[string]bool{}
	for _, in := range instances {
		keep[in.Name()] = true
		l.set(source, in)
	}
	for name, claims := range l.claims {
		for _, c := range claims {
			if c.source == source && !keep[name] {
				l.remove(source, name)
				break
			}
		}
	}
}

// Services returns the instances that the node offers, ordered by mesh name.
func (a *Agent) Services() []Service {
	l := &a.list
	l.mu.Lock()
	defer l.mu.Unlock()
	id := a.Identity().ID
	out := make([]Service, 0, len(l.shown))
	for _, s := range l.shown {
		out = append(out, Service{
			MeshService: &meshv1.MeshService{Service: s, NodeId: id, NodeName: a.cfg.Name},
			Descriptors: l.sets[s.GetDescriptors()],
		})
	}
	sortServices(out)
	return out
}

func sortServices(s []Service) {
	slices.SortFunc(s, func(x, y Service) int {
		return cmp.Or(cmp.Compare(x.GetService().GetName(), y.GetService().GetName()), cmp.Compare(x.GetNodeName(), y.GetNodeName()))
	})
}

func (l *list) set(source string, in Instance) {
	name := in.Name()
	claims := l.claims[name]
	i := slices.IndexFunc(claims, func(c claim) bool { return c.source == source })
	if i < 0 {
		l.claims[name] = append(claims, claim{source, in})
	} else {
		claims[i].inst = in
	}
	l.show(name)
}

func (l *list) remove(source, name string) {
	l.claims[name] = slices.DeleteFunc(l.claims[name], func(c claim) bool { return c.source == source })
	if len(l.claims[name]) == 0 {
		delete(l.claims, name)
	}
	l.show(name)
}

// show makes what is offered under a name follow its claims: the first that is
// up, or else the first.
func (l *list) show(name string) {
	claims := l.claims[name]
	if len(claims) == 0 {
		delete(l.leaving, name)
		if _, ok := l.shown[name]; ok {
			delete(l.shown, name)
			l.touch(name)
		}
		return
	}
	best := claims[0].inst
	for _, c := range claims {
		if c.inst.Up {
			best = c.inst
			break
		}
	}
	next := message(best)
	next.Leaving = l.leaving[name]
	if len(best.Descriptors) > 0 {
		next.Descriptors = hashOf(best.Descriptors)
		l.sets[next.Descriptors] = best.Descriptors
	}
	if before := l.shown[name]; before != nil {
		next.Generation = before.GetGeneration()
		if proto.Equal(before, next) {
			return
		}
	}
	l.generation++
	next.Generation = l.generation
	l.shown[name] = next
	l.touch(name)
}

func message(in Instance) *meshv1.ServiceInstance {
	m := &meshv1.ServiceInstance{
		Name: in.Name(), Interface: in.Interface, Instance: in.Instance,
		Origin: in.Origin, Address: in.Address, State: meshv1.InstanceState_INSTANCE_UP, Replica: in.Replica,
	}
	if !in.Up {
		m.State, m.Reason = meshv1.InstanceState_INSTANCE_DOWN, in.Reason
	}
	if !in.Since.IsZero() {
		m.Since = timestamppb.New(in.Since)
	}
	return m
}

func (l *list) touch(name string) {
	l.dirty[name] = struct{}{}
	l.change++
	l.tell()
}

func (l *list) tell() {
	close(l.news)
	l.news = make(chan struct{})
}

func (l *list) refusals() []*meshv1.Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*meshv1.Refusal
	for _, name := range slices.Sorted(maps.Keys(l.refused)) {
		out = append(out, &meshv1.Refusal{Name: name, Reason: l.refused[name]})
	}
	return out
}
