package registry

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// Snapshot is the state of both registries at one moment. All of it is immutable
// and shared.
type Snapshot struct {
	Version uint64
	// Settled: all nodes that were known when the control plane started have been
	// heard, or had the time for it. Before it, what is missing may just be late.
	Settled    bool
	Nodes      map[string]*Node      // by id
	Services   map[string]*Service   // by mesh name
	Interfaces map[string]*Interface // by full name
}

// Node is a node that holds its name; superseded ones are not in a snapshot.
type Node struct {
	store.Node
	Lost   bool
	Since  time.Time
	Synced bool // its digest came since the control plane started
}

// Service is a mesh service: an instance, or replicas of one.
type Service struct {
	Name      string
	Interface string
	Instance  string
	// Instances are ordered by who owns: first those that are up, of these those
	// that stay, then by rank.
	Instances []*Instance
}

// Instance is one instance of a mesh service on one node.
type Instance struct {
	Node    *Node
	Spec    *meshv1.ServiceInstance // as its node told it
	Address Address
	// Up, Reason and Since count, also where the node could not tell them.
	Up     bool
	Reason string
	Since  time.Time
	// Standby: another node owns the same instance, nothing is routed to this one.
	Standby bool
	// Leaving: how far it is on its way out.
	Leaving meshv1.Leaving
}

// replica reports whether the instance is one of several interchangeable ones.
func (i *Instance) replica() bool {
	return i.Spec.GetReplica() || i.Spec.GetOrigin().GetProtocol() == meshv1.Protocol_GRPC
}

// Interface is a service interface that instances exist of.
type Interface struct {
	Name     string
	Services []string // mesh names, sorted
	Default  string   // mesh name that a call by path reaches, "" for none
	// DefaultInstance is the exact instance name of the default.
	DefaultInstance string
}

// dirty collects what a change touches.
type dirty struct {
	nodes      map[*node]bool
	services   map[string]bool
	interfaces map[string]bool
}

func (r *Registry) newDirty() *dirty {
	return &dirty{nodes: map[*node]bool{}, services: map[string]bool{}, interfaces: map[string]bool{}}
}

// node marks a node, and its services with it: their instances point to it.
func (d *dirty) node(n *node) {
	d.nodes[n] = true
	d.servicesOf(n)
}

func (d *dirty) service(spec *meshv1.ServiceInstance) {
	d.services[spec.GetName()] = true
	d.interfaces[spec.GetInterface()] = true
}

func (d *dirty) servicesOf(n *node) {
	for _, inst := range n.services {
		d.services[inst.spec.GetName()] = true
	}
}

// publish makes the next snapshot and tells the subscriptions. It costs the
// entries that changed, and a copy of the pointers to the others.
func (r *Registry) publish(d *dirty) {
	old := r.snap.Load()
	if old.Settled == r.settled && len(d.nodes)+len(d.services)+len(d.interfaces) == 0 {
		return
	}
	next := &Snapshot{
		Version: old.Version + 1, Settled: r.settled,
		Nodes: old.Nodes, Services: old.Services, Interfaces: old.Interfaces,
	}
	c := Changes{Nodes: map[string]bool{}, Services: map[string]bool{}, Interfaces: map[string]bool{}}
	if len(d.nodes) > 0 {
		next.Nodes = maps.Clone(old.Nodes)
		for n := range d.nodes {
			c.Nodes[n.ID] = true
			if n.Superseded {
				delete(next.Nodes, n.ID)
			} else {
				next.Nodes[n.ID] = &Node{Node: n.Node, Lost: n.lost, Since: n.since, Synced: n.synced}
			}
		}
	}
	if len(d.services) > 0 {
		next.Services = maps.Clone(old.Services)
		for name := range d.services {
			c.Services[name] = true
			if len(r.services[name]) == 0 {
				delete(next.Services, name)
			} else {
				next.Services[name] = r.snapService(name, next.Nodes)
			}
		}
	}
	if len(d.interfaces) > 0 {
		next.Interfaces = maps.Clone(old.Interfaces)
		for iface := range d.interfaces {
			r.snapInterface(iface, old, next, c)
		}
	}
	r.snap.Store(next)
	for s := range r.subs {
		s.add(c)
	}
}

func (r *Registry) snapInterface(iface string, old, next *Snapshot, c Changes) {
	members := r.members[iface]
	if len(members) == 0 {
		delete(next.Interfaces, iface)
		c.Interfaces[iface] = true
		return
	}
	is := &Interface{
		Name:     iface,
		Services: slices.Sorted(maps.Keys(members)),
		Default:  effectiveDefault(r.defaults[iface], members),
	}
	if s := next.Services[is.Default]; s != nil {
		is.DefaultInstance = s.Instance
	}
	if was := old.Interfaces[iface]; was != nil && was.Default == is.Default &&
		was.DefaultInstance == is.DefaultInstance && slices.Equal(was.Services, is.Services) {
		return
	}
	next.Interfaces[iface] = is
	c.Interfaces[iface] = true
}

func (r *Registry) snapService(name string, nodes map[string]*Node) *Service {
	s := &Service{Name: name}
	for n, inst := range r.services[name] {
		s.Interface, s.Instance = inst.spec.GetInterface(), inst.spec.GetInstance()
		s.Instances = append(s.Instances, effective(inst, nodes[n.ID]))
	}
	slices.SortFunc(s.Instances, func(a, b *Instance) int {
		if a.Up != b.Up {
			if a.Up {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(min(a.Leaving, 1), min(b.Leaving, 1)),
			cmp.Compare(a.Node.Rank, b.Node.Rank), cmp.Compare(a.Node.ID, b.Node.ID))
	})
	for i, inst := range s.Instances {
		// An owner that leaves serves to the end what it was sent.
		inst.Standby = i > 0 && !inst.replica() && inst.Leaving == meshv1.Leaving_STAYS
	}
	return s
}

// effective judges an instance together with its node.
func effective(inst *instance, node *Node) *Instance {
	n := inst.node
	e := &Instance{
		Node: node, Spec: inst.spec, Address: inst.address,
		Up:      inst.spec.GetState() == meshv1.InstanceState_INSTANCE_UP,
		Reason:  inst.spec.GetReason(),
		Since:   inst.spec.GetSince().AsTime(),
		Leaving: inst.spec.GetLeaving(),
	}
	switch {
	case !e.Up || !n.stale:
	case inst.bridged():
		e.Up, e.Reason, e.Since = false, "the gateway of node "+n.Name+" is gone", n.staleAt
	case n.mute:
		e.Up, e.Reason, e.Since = false, "node "+n.Name+" does not answer", n.muteAt
	}
	return e
}
