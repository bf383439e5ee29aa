package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"carisma.dev/gateway/mesh/api/meshv1"
)

// linkState says whether a link of a path holds.
type linkState string

const (
	whole   linkState = "ok"
	broken  linkState = "broken"
	waiting linkState = "waiting" // it is under way
	aside   linkState = "aside"   // not on the path: a standby, or one of several that is down
)

// link is one link of the path from a service to its callers.
type link struct {
	Link   string    `json:"link"`
	Of     string    `json:"of"`
	State  linkState `json:"state"`
	Detail string    `json:"detail"`
}

// explain walks the path, from the service to its callers.
func (f *facts) explain() []link {
	links := f.sources()
	instances, up := f.registry()
	links = append(links, instances...)
	if len(instances) == 0 {
		links = append(links, f.unknown())
	} else {
		links = append(links, f.views(up)...)
		links = append(links, f.taken()...)
	}
	if f.call != nil {
		links = append(links, *f.call)
	}
	return links
}

// sources is what gateways see of the service themselves: an offer, or the health
// of a native service.
func (f *facts) sources() (links []link) {
	seen := false
	for _, g := range f.gateways {
		for _, in := range g.Instances {
			if in.Name != f.name || in.From == "gRPC" { // that one is the mesh's own word
				continue
			}
			l := link{Link: "source", Of: g.Node, State: whole, Detail: in.From + ", up since " + ago(stamp(in.Since))}
			if !in.Up {
				l.State, l.Detail = aside, fmt.Sprintf("%s, down since %s: %s", in.From, ago(stamp(in.Since)), in.Reason)
			}
			seen = seen || in.Up
			links = append(links, l)
		}
	}
	for i := range links {
		if !seen && links[i].State == aside && !f.upElsewhere() {
			links[i].State = broken
		}
	}
	return links
}

func (f *facts) upElsewhere() bool {
	return slices.ContainsFunc(f.services, func(s *meshv1.MeshService) bool {
		return s.GetService().GetName() == f.name && s.GetService().GetState() == meshv1.InstanceState_INSTANCE_UP
	})
}

// registry is the instances and the leases of their nodes. up tells whether one
// can be called.
func (f *facts) registry() (links []link, up bool) {
	anyUp := f.upElsewhere()
	for _, s := range f.services {
		in := s.GetService()
		if in.GetName() != f.name {
			continue
		}
		l := link{Link: "registry", Of: s.GetNodeName(), State: whole, Detail: "up since " + ago(in.GetSince())}
		switch {
		case in.GetState() != meshv1.InstanceState_INSTANCE_UP:
			l.State, l.Detail = broken, fmt.Sprintf("down since %s: %s", ago(in.GetSince()), in.GetReason())
			if anyUp {
				l.State = aside
			}
		case s.GetStandby():
			l.State, l.Detail = aside, "standby: another node owns it"
		case in.GetLeaving() != meshv1.Leaving_STAYS:
			l.State, l.Detail = aside, "on its way out: "+strings.ToLower(strings.TrimPrefix(in.GetLeaving().String(), "LEAVING_"))
			up = up || in.GetLeaving() == meshv1.Leaving_LEAVING_DRAINING
		default:
			up = true
		}
		links = append(links, l)
		links = append(links, f.lease(s, anyUp)...)
	}
	return links, up
}

func (f *facts) lease(s *meshv1.MeshService, anyUp bool) []link {
	for _, n := range f.nodes {
		if n.GetId() != s.GetNodeId() {
			continue
		}
		l := link{Link: "lease", Of: n.GetName(), State: whole, Detail: "held since " + ago(n.GetSince())}
		if n.GetState() != meshv1.NodeState_NODE_UP {
			l.State, l.Detail = broken, "lost since "+ago(n.GetSince())
			if anyUp {
				l.State = aside
			}
		}
		return []link{l}
	}
	return nil
}

// unknown says why the registry has no instance of the name.
func (f *facts) unknown() link {
	l := link{Link: "registry", Of: "central", State: broken}
	for _, g := range f.gateways {
		for _, r := range g.ControlPlane.Refused {
			if r.GetName() == f.name {
				l.Detail = "refused from node " + g.Node + ": " + r.GetReason()
				return l
			}
		}
		if !g.ControlPlane.Connected {
			l.Detail = "node " + g.Node + " does not reach it: " + g.ControlPlane.Reason
		}
	}
	if l.Detail != "" {
		return l
	}
	l.Detail = "no instance has this name"
	_, iface, _ := strings.Cut(f.name, ".")
	var like []string
	for _, s := range f.services {
		if name := s.GetService().GetName(); iface != "" && strings.HasSuffix(name, "."+iface) && !slices.Contains(like, name) {
			like = append(like, name)
		}
	}
	if len(like) > 0 {
		l.Detail += "; the interface has " + strings.Join(like, ", ")
	}
	l.Detail += f.networksTrouble()
	return l
}

// networksTrouble says why gateways may not see what is on their networks.
func (f *facts) networksTrouble() (text string) {
	for _, g := range f.gateways {
		for _, n := range g.Networks {
			switch d := n.Discovery; {
			case !n.Up:
				text += fmt.Sprintf("; network %s of node %s is down: %s", n.Name, g.Node, n.Reason)
			case d != nil && d.OwnEndpoint > 0:
				text += fmt.Sprintf("; on network %s of node %s, %d offers or subscriptions named %s itself and were ignored",
					n.Name, g.Node, d.OwnEndpoint, n.Address)
			}
			if d := n.Discovery; d != nil && d.OfferLimit+d.EntryLimit > 0 {
				text += fmt.Sprintf("; on network %s of node %s, %d offers and entries were above what a peer may have",
					n.Name, g.Node, d.OfferLimit+d.EntryLimit)
			}
		}
	}
	return text
}

// views is what the egress of each node does with the service.
func (f *facts) views(up bool) (links []link) {
	for _, n := range f.routes {
		l := link{Link: "view", Of: n.GetNodeName(), State: aside, Detail: "no route"}
		var ways []string
		for _, r := range n.GetEgress() {
			if r.GetName() == f.name {
				ways = append(ways, routeWord(r))
			}
		}
		switch {
		case len(ways) == 0 && up, slices.Contains(ways, "gone") && up:
			l.State = broken
		case len(ways) > 0 && !slices.Contains(ways, "gone"):
			l.State = whole
		}
		if len(ways) > 0 {
			l.Detail = strings.Join(ways, ", ")
		}
		links = append(links, l)
	}
	return links
}

// taken is what the proxies were sent, and whether they took it.
func (f *facts) taken() (links []link) {
	for _, n := range f.routes {
		l := link{Link: "proxy", Of: n.GetNodeName(), State: broken, Detail: "never connected"}
		for _, p := range f.proxies {
			if p.GetNodeId() == n.GetNodeId() {
				l.State, l.Detail = f.proxy(p)
			}
		}
		links = append(links, l)
	}
	return links
}

func (f *facts) proxy(p *meshv1.Proxy) (linkState, string) {
	if p.GetPeer() == "" {
		return broken, "not connected; it goes on with what it has"
	}
	state, detail := whole, "took what it was sent"
	late := false
	for _, t := range p.GetTypes() {
		for _, n := range t.GetNacks() {
			if f.needs(n.GetResource()) {
				return broken, fmt.Sprintf("refuses %s %s since %s: %s", typeName(t.GetTypeUrl()), n.GetResource(), ago(n.GetSince()), n.GetReason())
			}
		}
		// What was refused was answered, too.
		if t.GetSentVersion() != t.GetAckedVersion() && len(t.GetNacks()) == 0 && !late {
			late = t.GetSent() != nil && time.Since(t.GetSent().AsTime()) > answerTime
			state, detail = waiting, fmt.Sprintf("has not answered %s %s, sent %s", typeName(t.GetTypeUrl()), t.GetSentVersion(), ago(t.GetSent()))
			if late {
				state = broken
			}
		}
	}
	return state, detail
}

// answerTime is how long a proxy that lives may take to acknowledge.
const answerTime = 5 * time.Second

// needs reports whether the path of the service runs over a resource of a proxy.
func (f *facts) needs(resource string) bool {
	return resource == f.name || strings.HasPrefix(resource, f.name+"/") ||
		slices.Contains([]string{"egress", "ingress", "gateway", "*"}, resource)
}
