package grpcadapter

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/model"
)

// directory is what calls are routed by: the instances exposed here and those
// of the catalogue. It is immutable; each change makes a new one.
type directory struct {
	families map[string]*family // by full name of the interface
	targets  map[string]*target // by mesh name
}

// family is the instances of one interface.
type family struct {
	name      string
	lower     string // of name, as in mesh names
	instances map[string]*target
	// first is the default instance: of those up the oldest, one served here
	// before others. It stays until it goes, whatever appears meanwhile.
	first *target
}

// target is one instance.
type target struct {
	name        string // mesh name
	family      *family
	instance    string
	up          bool
	reason      string
	since       time.Time
	node        string // that has it; empty for this one
	descriptors []byte

	// Of an instance served here:
	svc  bridge.Service
	rpcs map[string]rpc // by name
}

// rpc is a method or an event.
type rpc struct {
	method *model.Method
	event  *model.Event
}

func rpcsOf(iface *model.Interface) map[string]rpc {
	rpcs := map[string]rpc{}
	for _, m := range iface.AllMethods() {
		rpcs[m.RPC] = rpc{method: m}
	}
	for _, e := range iface.AllEvents() {
		rpcs[e.RPC] = rpc{event: e}
	}
	return rpcs
}

// local is an instance that is or was exposed here.
type local struct {
	inst   bridge.Instance
	svc    bridge.Service // nil when it went
	rpcs   map[string]rpc
	reason string
	since  time.Time
}

// newDirectory merges what is exposed here with the catalogue. What is served
// here is reached here, whatever the catalogue says; of the rest the catalogue
// knows more, unless it does not know yet that the instance went.
func newDirectory(locals map[string]*local, catalogue []CatalogueEntry, node string) *directory {
	most := len(locals) + len(catalogue)
	d := &directory{families: map[string]*family{}, targets: make(map[string]*target, most)}
	targets := make([]target, 0, most) // in one piece: a mesh has hundreds, and each change makes all anew
	add := func(iface string, t target) {
		targets = append(targets, t)
		d.add(iface, &targets[len(targets)-1])
	}
	for name, l := range locals {
		add(l.inst.Interface.FullName(), target{
			name: name, instance: l.inst.Name, up: l.svc != nil, reason: l.reason, since: l.since,
			descriptors: l.inst.Descriptors, svc: l.svc, rpcs: l.rpcs,
		})
	}
	for i := range catalogue {
		e := &catalogue[i]
		if l := locals[e.Name]; l != nil && (l.svc != nil || e.NodeName == node || !e.Up) {
			continue
		}
		// Of replicas one that is up speaks for all, and of those the oldest.
		if t := d.targets[e.Name]; t != nil && (!e.Up || t.up && !e.Since.Before(t.since)) {
			continue
		}
		add(e.Interface, target{
			name: e.Name, instance: e.Instance, up: e.Up, reason: e.Reason, since: e.Since,
			descriptors: e.Descriptors, node: e.NodeName,
		})
	}
	for _, f := range d.families {
		f.choose()
	}
	return d
}

func (d *directory) add(iface string, t *target) {
	f := d.families[iface]
	if f == nil {
		f = &family{name: iface, lower: strings.ToLower(iface), instances: map[string]*target{}}
		d.families[iface] = f
	}
	t.family = f
	f.instances[t.instance] = t
	d.targets[t.name] = t
}

// choose finds the default instance.
func (f *family) choose() {
	rank := func(t *target) int {
		switch {
		case t.svc != nil:
			return 2
		case t.up:
			return 1
		default:
			return 0
		}
	}
	for _, t := range f.instances {
		if f.first == nil || cmp.Or(
			cmp.Compare(rank(f.first), rank(t)), t.since.Compare(f.first.since), cmp.Compare(t.name, f.first.name)) < 0 {
			f.first = t
		}
	}
}

// names lists the instances for a message to the caller.
func (f *family) names() string {
	names := make([]string, 0, len(f.instances))
	for name := range f.instances {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
