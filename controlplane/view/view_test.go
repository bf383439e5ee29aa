package view_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/controlplane/registry"
	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/controlplane/view"
)

// row is one line of a table that says where a call of a service goes.
type row struct {
	Service, Node, Address string
	Class                  view.Class
}

// oracle computes the egress table of a node straight from the text of the
// requirements, one service and one instance at a time.
func oracle(snap *registry.Snapshot, node string) map[string][]row {
	table := map[string][]row{}
	for name, s := range snap.Services {
		var local, global []row
		for _, inst := range s.Instances {
			if !inst.Up || inst.Standby {
				continue
			}
			if inst.Node.ID == node { // CAR-18
				local = append(local, row{name, node, inst.Address.String(), view.Local})
			} else if p := inst.Node.Proxy; p != nil { // CAR-19
				address := fmt.Sprintf("%s:%d", inst.Node.Address, p.Ingress.Port())
				global = append(global, row{name, inst.Node.ID, address, view.Remote})
			}
		}
		if len(local) > 0 {
			global = nil // CAR-21
		}
		table[name] = append(local, global...)
	}
	return table
}

func random(rnd *rand.Rand) *registry.Snapshot {
	snap := &registry.Snapshot{Nodes: map[string]*registry.Node{}, Services: map[string]*registry.Service{}}
	var nodes []*registry.Node
	for i := range 1 + rnd.IntN(6) {
		n := &registry.Node{Node: store.Node{
			ID: fmt.Sprintf("id%d", i), Name: fmt.Sprintf("n%d", i),
			Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}),
		}}
		if rnd.IntN(8) > 0 {
			n.Proxy = &store.Proxy{Ingress: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(15001+rnd.IntN(2)))}
		}
		snap.Nodes[n.ID] = n
		nodes = append(nodes, n)
	}
	for i := range rnd.IntN(12) {
		s := &registry.Service{Name: fmt.Sprintf("s%d", i)}
		for j, k := range rnd.Perm(len(nodes))[:1+rnd.IntN(len(nodes))] {
			s.Instances = append(s.Instances, &registry.Instance{
				Node: nodes[k], Up: rnd.IntN(4) > 0, Standby: j > 0 && i%3 == 0,
				Address: registry.Address{Path: fmt.Sprintf("/run/%d-%d", i, k)},
			})
		}
		snap.Services[s.Name] = s
	}
	return snap
}

// CAR-20, CAR-24: the views equal the oracle's for every node; egress has every
// service with one class; local and global∖local are disjoint.
func TestViews(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		snap := random(rand.New(rand.NewPCG(seed, 7)))
		for id := range snap.Nodes {
			want := oracle(snap, id)
			got := map[string][]row{}
			local := map[string]bool{}
			for _, e := range view.Ingress(snap, id) {
				for _, inst := range snap.Services[e.Service].Instances {
					if inst.Node.ID == id && !inst.Standby {
						local[e.Service] = true
					}
				}
				for _, p := range e.Endpoints {
					require.Equal(t, id, p.Node, "CAR-23: no transit")
				}
			}
			global := map[string]bool{}
			for _, e := range view.Global(snap, id) {
				global[e.Service] = true
			}
			for _, r := range view.Egress(snap, id) {
				_, twice := got[r.Service]
				require.False(t, twice)
				got[r.Service] = nil
				for _, p := range r.Endpoints {
					got[r.Service] = append(got[r.Service], row{r.Service, p.Node, p.Address.String(), r.Class})
					require.Equal(t, snap.Nodes[p.Node].Name, p.Name)
				}
				switch r.Class {
				case view.Local:
					require.True(t, local[r.Service])
				case view.Remote:
					require.True(t, global[r.Service] && !local[r.Service])
				case view.Gone:
					require.False(t, global[r.Service] || local[r.Service])
					require.Empty(t, r.Endpoints)
				}
			}
			for _, rows := range want {
				sortRows(rows)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, node %s: %s", seed, id, diff)
			}
		}
	}
}

func sortRows(rows []row) {
	for i := range rows {
		for j := i; j > 0 && rows[j].Node < rows[j-1].Node; j-- {
			rows[j], rows[j-1] = rows[j-1], rows[j]
		}
	}
}

// The same snapshot gives the same views, whatever the order of its maps.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		a, b := random(rand.New(rand.NewPCG(seed, 1))), random(rand.New(rand.NewPCG(seed, 1)))
		for id := range a.Nodes {
			require.Equal(t, view.Egress(a, id), view.Egress(b, id))
			require.Equal(t, view.Ingress(a, id), view.Ingress(b, id))
			require.Equal(t, view.Global(a, id), view.Global(b, id))
		}
	}
}

func TestHas(t *testing.T) {
	t.Parallel()
	n := &registry.Node{Node: store.Node{ID: "a"}}
	s := &registry.Service{Instances: []*registry.Instance{{Node: n, Standby: true}}}
	require.True(t, view.Has("a", s))
	require.False(t, view.Has("b", s))
}

func TestClassNames(t *testing.T) {
	t.Parallel()
	require.Equal(t, "gone local remote", fmt.Sprint(view.Gone, " ", view.Local, " ", view.Remote))
}
