package lint

import (
	"strings"

	"carisma.dev/gateway/codegen/model"
)

// clashes finds interfaces that a service id and major version do not tell apart
// (rule id-clash).
func clashes(r *report, interfaces []*model.Interface) {
	type key struct {
		id    uint16
		major uint32
	}
	first := map[key]*model.Interface{}
	for _, i := range interfaces {
		if i.SOMEIP == nil {
			continue
		}
		k := key{i.SOMEIP.ServiceID, i.Version.Major}
		if before := first[k]; before != nil {
			r.add(i.Pos, Error, "id-clash", "%s has service id 0x%04x and major version %d, as %s at %s has",
				i.FullName(), k.id, k.major, before.FullName(), before.Pos)
			continue
		}
		first[k] = i
	}
}

// instanceNames finds names that the mesh spells otherwise (rule instance-name).
func instanceNames(r *report, i *model.Interface) {
	for _, in := range i.SOMEIP.Instances {
		label := strings.TrimSuffix(i.MeshName(in.Name), "."+strings.ToLower(i.FullName()))
		if label != in.Name {
			r.add(i.Pos, Info, "instance-name", "the instance %q is called %s in the mesh", in.Name, label)
		}
	}
}

// reachability finds rpcs that SOME/IP peers cannot use (rules no-id, unexposed).
func reachability(r *report, i *model.Interface) {
	const noID = "%s has no SOME/IP id: SOME/IP peers cannot use it"
	for _, m := range i.AllMethods() {
		if m.SOMEIP == nil {
			r.add(m.Pos, Info, "no-id", noID, m.RPC)
		}
	}
	for _, e := range i.AllEvents() {
		if e.SOMEIP == nil {
			r.add(e.Pos, Info, "no-id", noID, e.RPC)
		}
	}
	for _, u := range i.Unexposed {
		r.add(i.Pos, Info, "unexposed", "%s is %s: SOME/IP peers cannot use it", u.RPC, u.Reason)
	}
}

// eventgroups finds groups whose subscribers need UDP and TCP (rule
// eventgroup-transport): some peers then subscribe to half of the events.
func eventgroups(r *report, i *model.Interface) {
	first := map[uint16]*model.Event{}
	for _, e := range i.AllEvents() {
		if e.SOMEIP == nil {
			continue
		}
		for _, g := range e.SOMEIP.Eventgroups {
			before := first[g]
			if before == nil {
				first[g] = e
			} else if before.SOMEIP.Reliable != e.SOMEIP.Reliable {
				r.add(e.Pos, Warning, "eventgroup-transport", "%s is sent by %s, but %s, also in eventgroup 0x%04x, by %s",
					e.Name, transport(e), before.Name, g, transport(before))
			}
		}
	}
}

func transport(e *model.Event) string {
	if e.SOMEIP.Reliable {
		return "TCP"
	}
	return "UDP"
}
