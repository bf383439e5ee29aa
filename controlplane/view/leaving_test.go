package view_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/controlplane/view"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// CAR-25: a draining instance shadows nobody and gets nothing new while another
// stays; the last is never draining; its own ingress serves it to the end.
func TestLeaving(t *testing.T) {
	t.Parallel()
	const (
		stays     = meshv1.Leaving_STAYS
		draining  = meshv1.Leaving_LEAVING_DRAINING
		withdrawn = meshv1.Leaving_LEAVING_WITHDRAWN
		absent    = -1
	)
	for name, c := range map[string]struct {
		a, b   meshv1.Leaving // of the instances on nodes a and b
		fromA  string
		fromC  string
		classA view.Class
	}{
		"both stay":               {stays, stays, "a", "a b", view.Local},
		"one drains":              {draining, stays, "b", "b a-draining", view.Remote},
		"the other drains":        {stays, draining, "a", "a b-draining", view.Local},
		"the last drains":         {draining, absent, "a", "a", view.Local},
		"both drain":              {draining, draining, "a", "a b", view.Local},
		"one is withdrawn":        {withdrawn, stays, "b", "b", view.Remote},
		"the last is withdrawn":   {withdrawn, absent, "", "", view.Gone},
		"one drains, one is gone": {withdrawn, draining, "b", "b", view.Remote},
	} {
		s := &registry.Service{Name: "s"}
		for i, leaving := range []meshv1.Leaving{c.a, c.b} {
			if leaving != absent {
				id := string(rune('a' + i))
				s.Instances = append(s.Instances, &registry.Instance{
					Node: &registry.Node{Node: store.Node{
						ID: id, Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), Proxy: &store.Proxy{},
					}},
					Up: true, Leaving: leaving,
				})
			}
		}
		fromA := view.RouteOf("a", s)
		require.Equal(t, c.classA, fromA.Class, name)
		require.Equal(t, c.fromA, words(fromA.Endpoints), name)
		require.Equal(t, c.fromC, words(view.RouteOf("c", s).Endpoints), name)
		require.Len(t, view.LocalOf("a", s), 1, name)
	}
}

func words(endpoints []view.Endpoint) string {
	text := ""
	for _, e := range endpoints {
		text += " " + e.Node
		if e.Draining {
			text += "-draining"
		}
	}
	if text == "" {
		return ""
	}
	return text[1:]
}
