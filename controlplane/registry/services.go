package registry

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// maxServices bounds the services of one node.
const maxServices = 4096

// instance is a service instance as its node told it; Registry.mu guards it, spec
// is never changed.
type instance struct {
	node    *node
	spec    *meshv1.ServiceInstance
	address Address
}

// bridged reports whether the gateway of the node stands between the instance and
// the mesh, so that it is gone with the gateway.
func (i *instance) bridged() bool { return i.spec.GetOrigin().GetProtocol() != meshv1.Protocol_GRPC }

// Synchronize replaces all services of the calling node by its digest. Instances
// that cannot be taken are refused one by one; the others count. What was known
// under a name that is refused now goes too: the node has it no more. A bridged
// instance that served and is not in the digest is only down until the next one:
// a gateway that was started anew has yet to find what is on its networks.
func (r *Registry) Synchronize(id api.Identity, digest []*meshv1.ServiceInstance) ([]*meshv1.Refusal, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.check(id)
	if err != nil {
		return nil, err
	}
	if err := r.mayChange(n, digestCost); err != nil {
		return nil, err
	}
	remove := map[string]bool{}
	for name := range n.services {
		remove[name] = true
	}
	digest = append(slices.Clip(digest), n.unseen(digest)...)
	refusals, d, err := r.change(n, digest, remove, true)
	if err != nil {
		return nil, err
	}
	if n.stale || !n.synced {
		n.stale, n.synced = false, true
		d.node(n)
	}
	n.session.digested = true
	r.publish(d)
	r.settleIfAll()
	return refusals, nil
}

// unseen returns what a digest lacks of the bridged instances that served, as
// down.
func (n *node) unseen(digest []*meshv1.ServiceInstance) []*meshv1.ServiceInstance {
	in := make(map[string]bool, len(digest))
	for _, s := range digest {
		in[s.GetName()] = true
	}
	var all []*meshv1.ServiceInstance
	for name, inst := range n.services {
		if in[name] || !inst.bridged() || inst.spec.GetState() != meshv1.InstanceState_INSTANCE_UP {
			continue
		}
		down := proto.CloneOf(inst.spec)
		down.State, down.Since = meshv1.InstanceState_INSTANCE_DOWN, timestamppb.New(time.Now())
		down.Reason = "the gateway of node " + n.Name + " has not seen it since it came back"
		all = append(all, down)
	}
	return all
}

// Update adds, changes and removes services of the calling node (CAR-15). What a node does
// not have it cannot remove, so it reaches no other node's services (CAR-16).
func (r *Registry) Update(id api.Identity, set []*meshv1.ServiceInstance, remove []string) ([]*meshv1.Refusal, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.check(id)
	if err != nil {
		return nil, err
	}
	if !n.synced {
		return nil, r.refuse(newError(NoDigest, "node %s has given no digest yet", n.Name))
	}
	if err := r.mayChange(n, 1); err != nil {
		return nil, err
	}
	gone := map[string]bool{}
	var foreign []*meshv1.Refusal
	for _, name := range remove {
		switch {
		case n.services[name] != nil:
			gone[name] = true
		case len(r.services[name]) > 0:
			foreign = append(foreign, refusal(name, "another node has it"))
		}
	}
	refusals, d, err := r.change(n, set, gone, false)
	if err != nil {
		return nil, err
	}
	r.publish(d)
	refusals = append(foreign, refusals...)
	r.refused[Invalid] += uint64(len(foreign))
	return refusals, nil
}

func refusal(name, why string) *meshv1.Refusal {
	return &meshv1.Refusal{Name: name, Reason: why}
}

// change takes what can be taken of set, and removes the rest of remove. Nothing
// changes if it returns an error.
func (r *Registry) change(n *node, set []*meshv1.ServiceInstance, remove map[string]bool, whole bool) ([]*meshv1.Refusal, *dirty, error) {
	var refusals []*meshv1.Refusal
	taken := map[string]*instance{}
	var order []*instance // in the order of the request: the first may become the default
	displaced := map[string]bool{}
	fresh := 0 // of these, how many the node did not have
	for _, spec := range set {
		name := spec.GetName()
		address, why := validateInstance(spec)
		var displace bool
		switch old := n.services[name]; {
		case why != "":
		case taken[name] != nil:
			why = "twice in one request"
		case !whole && old != nil && spec.GetGeneration() < old.spec.GetGeneration():
			why = "a newer generation is known"
		case (old == nil || remove[name]) && len(n.services)-len(remove)+fresh >= maxServices:
			why = "the node has too many services"
		default:
			displace, why = r.clash(n, spec)
		}
		if why != "" {
			refusals = append(refusals, refusal(clip(name), why))
			r.refused[Invalid]++
			r.log.Warn("service refused", "node", n.Name, "service", clip(name), "reason", why)
			continue
		}
		displaced[name] = displace
		delete(remove, name)
		if n.services[name] == nil {
			fresh++
		}
		taken[name] = &instance{node: n, spec: r.normal(n, spec), address: address}
		order = append(order, taken[name])
	}
	if err := r.storeDefaults(n, order, remove); err != nil {
		return nil, nil, err
	}
	d := r.newDirty()
	for name := range remove {
		r.drop(n.services[name], d)
	}
	for _, inst := range order {
		if displaced[inst.spec.GetName()] {
			for _, other := range r.services[inst.spec.GetName()] {
				r.drop(other, d)
			}
		}
		r.put(inst, d)
	}
	return refusals, d, nil
}

// normal copies what a node said, so that nobody else can change it.
func (r *Registry) normal(n *node, spec *meshv1.ServiceInstance) *meshv1.ServiceInstance {
	s := proto.CloneOf(spec)
	s.Reason = clip(s.GetReason())
	if s.GetSince() == nil {
		s.Since = timestamppb.New(time.Now())
		if old := n.services[s.GetName()]; old != nil && old.spec.GetState() == s.GetState() {
			s.Since = old.spec.GetSince()
		}
	}
	return s
}

// clash says why the name of an instance cannot be taken, "" if it can. An
// instance that only lost nodes have makes way for one that is another thing.
func (r *Registry) clash(n *node, spec *meshv1.ServiceInstance) (displace bool, why string) {
	for other, inst := range r.services[spec.GetName()] {
		if other == n || sameThing(inst.spec, spec) {
			continue
		}
		if !other.lost {
			return false, "the name is taken by instance " + inst.spec.GetInstance() +
				" of " + inst.spec.GetInterface() + " on node " + other.Name
		}
		displace = true
	}
	return displace, ""
}

// sameThing reports whether two nodes that have one mesh name mean one thing:
// replicas of a service, or one instance that two gateways see.
func sameThing(a, b *meshv1.ServiceInstance) bool {
	if a.GetInterface() != b.GetInterface() || a.GetInstance() != b.GetInstance() {
		return false
	}
	x, y := a.GetOrigin(), b.GetOrigin()
	if x.GetProtocol() == meshv1.Protocol_GRPC || y.GetProtocol() == meshv1.Protocol_GRPC {
		return x.GetProtocol() == y.GetProtocol()
	}
	if a.GetReplica() && b.GetReplica() { // CAR-52
		return x.GetProtocol() == y.GetProtocol()
	}
	return x.GetProtocol() == y.GetProtocol() && x.GetNetwork() == y.GetNetwork() &&
		x.GetServiceId() == y.GetServiceId() && x.GetInstanceId() == y.GetInstanceId() &&
		x.GetMajor() == y.GetMajor()
}

func (r *Registry) put(inst *instance, d *dirty) {
	name := inst.spec.GetName()
	old := inst.node.services[name]
	if old != nil {
		if proto.Equal(old.spec, inst.spec) {
			return // CAR-17: nothing changed, nobody hears of it
		}
		if old.spec.GetInterface() != inst.spec.GetInterface() {
			r.drop(old, d)
		}
	}
	if r.services[name] == nil {
		r.services[name] = map[*node]*instance{}
	}
	r.services[name][inst.node] = inst
	inst.node.services[name] = inst
	iface := inst.spec.GetInterface()
	if r.members[iface] == nil {
		r.members[iface] = map[string]bool{}
	}
	r.members[iface][name] = true
	d.service(inst.spec)
}

func (r *Registry) drop(inst *instance, d *dirty) {
	name, iface := inst.spec.GetName(), inst.spec.GetInterface()
	delete(inst.node.services, name)
	delete(r.services[name], inst.node)
	d.service(inst.spec)
	if len(r.services[name]) > 0 {
		return
	}
	delete(r.services, name)
	delete(r.members[iface], name)
	if len(r.members[iface]) == 0 {
		delete(r.members, iface)
	}
}

// storeDefaults finds the default instances that the change will bring and stores
// them before it happens.
func (r *Registry) storeDefaults(n *node, set []*instance, remove map[string]bool) error {
	arrivals := map[string][]string{} // by interface, in the order of arrival
	leave := map[string][]string{}
	for name := range remove {
		if len(r.services[name]) == 1 {
			iface := n.services[name].spec.GetInterface()
			leave[iface] = append(leave[iface], name)
		}
	}
	for _, inst := range set {
		iface := inst.spec.GetInterface()
		if !r.members[iface][inst.spec.GetName()] {
			arrivals[iface] = append(arrivals[iface], inst.spec.GetName())
		}
	}
	changed := map[string]string{}
	for iface, names := range arrivals {
		before := r.defaults[iface]
		if after := nextDefault(before, r.members[iface], leave[iface], names); after != before {
			changed[iface] = after
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if err := r.cfg.Store.PutDefaults(changed); err != nil {
		return r.refuse(newError(Storage, "%v", err))
	}
	maps.Copy(r.defaults, changed)
	return nil
}
