package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
	"carisma.dev/gateway/mesh/gateway"
	"carisma.dev/gateway/vehicles/run"
)

// Change is the time from a change in the registry until both Envoys have
// acknowledged it, in milliseconds.
type Change struct {
	What     string  `json:"what"`
	Services int     `json:"services"` // in the mesh beside those of the vehicle
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Count    int     `json:"count"`
}

// Of every kind so many changes are measured.
const changeCount = 300

// The kinds of change.
const (
	endpointChange = "endpoint of a service"
	serviceChange  = "service added or gone"
)

// registrar speaks to the registry as the node rear.
type registrar struct {
	services   meshv1.ServiceRegistryClient
	identity   api.Identity
	generation uint64
}

// changes measures how fast the proxies follow the registry. The changes are made
// in the name of rear, whose own list knows nothing of these services.
func (o Options) changes(ctx context.Context, r *run.Runner, result *Result) (err error) {
	conn, err := r.Host(rear).NewClient(r.ControlPlane())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	g := &registrar{services: meshv1.NewServiceRegistryClient(conn)}
	if err := retry(ctx, func(ctx context.Context) error { return g.ready(ctx, r) }); err != nil {
		return err
	}
	there := 0
	for _, services := range []int{2, 500} {
		var more []*meshv1.ServiceInstance
		for ; there < services; there++ {
			more = append(more, g.instance(fmt.Sprintf("i%d", there), 5000))
		}
		if _, err := g.change(ctx, &meshv1.UpdateRequest{Set: more}, more[0].GetName()); err != nil {
			return err
		}
		for _, c := range []Change{{What: endpointChange, Services: services}, {What: serviceChange, Services: services}} {
			if err := g.measure(ctx, &c); err != nil {
				return fmt.Errorf("%s: %w", c.What, err)
			}
			fmt.Fprintf(o.Progress, "%-30s %4d services  p50 %5.2f ms, p99 %5.2f ms\n", c.What, services, c.P50, c.P99)
			result.Changes = append(result.Changes, c)
		}
	}
	result.judgeChanges()
	return nil
}

func (g *registrar) measure(ctx context.Context, c *Change) error {
	next := map[string]func(int) (*meshv1.UpdateRequest, string){endpointChange: g.endpoint, serviceChange: g.service}[c.What]
	var times []float64
	for i := range changeCount + changeCount/10 {
		req, name := next(i)
		took, err := g.change(ctx, req, name)
		if err != nil {
			return err
		}
		if i >= changeCount/10 {
			times = append(times, milliseconds(took))
		}
	}
	c.P50, c.P99, c.Count = median(times), quantile(times, 0.99), len(times)
	return nil
}

// ready waits for both proxies.
func (g *registrar) ready(ctx context.Context, r *run.Runner) error {
	for _, host := range []string{center, rear} {
		st, err := gateway.FetchStatus(ctx, filepath.Join(r.Dir(host), "state"))
		if err != nil {
			return err
		}
		if !st.ControlPlane.Connected || !st.ADS.Connected {
			return fmt.Errorf("%s has no connection yet", host)
		}
		g.identity = api.Identity{ID: st.NodeID, Epoch: st.Epoch} // the last is rear's
	}
	resp, err := g.services.AwaitProxies(ctx, &meshv1.AwaitProxiesRequest{Name: "none"})
	if err == nil && len(resp.GetAcknowledged()) != 2 {
		err = fmt.Errorf("only %s has a proxy", resp.GetAcknowledged())
	}
	return err
}

const (
	changed     = "bench.v1.Changed"
	changedName = ".bench.v1.changed"
)

// instance describes a native service that nobody calls.
func (g *registrar) instance(name string, port int) *meshv1.ServiceInstance {
	g.generation++
	return &meshv1.ServiceInstance{
		Name: name + changedName, Interface: changed, Instance: name, Generation: g.generation,
		Origin:  &meshv1.Origin{Protocol: meshv1.Protocol_GRPC, Major: 1},
		Address: fmt.Sprintf("127.0.0.1:%d", port), State: meshv1.InstanceState_INSTANCE_UP,
	}
}

// endpoint takes the endpoint of a service away and gives it another, in turn, so
// that both proxies have to hear of it.
func (g *registrar) endpoint(i int) (*meshv1.UpdateRequest, string) {
	s := g.instance("i0", 1024+i)
	if i%2 == 0 {
		s.State, s.Reason = meshv1.InstanceState_INSTANCE_DOWN, "away"
	}
	return &meshv1.UpdateRequest{Set: []*meshv1.ServiceInstance{s}}, s.GetName()
}

// service adds a service and removes it, in turn.
func (g *registrar) service(i int) (*meshv1.UpdateRequest, string) {
	s := g.instance("more", 5000)
	if i%2 == 0 {
		return &meshv1.UpdateRequest{Set: []*meshv1.ServiceInstance{s}}, s.GetName()
	}
	return &meshv1.UpdateRequest{Remove: []string{s.GetName()}}, s.GetName()
}

// change changes the registry and returns how long both proxies took.
func (g *registrar) change(ctx context.Context, req *meshv1.UpdateRequest, name string) (time.Duration, error) {
	ctx = api.NewOutgoing(ctx, g.identity)
	began := time.Now()
	resp, err := g.services.Update(ctx, req)
	if err != nil {
		return 0, err
	}
	if refused := resp.GetRefusals(); len(refused) > 0 {
		return 0, fmt.Errorf("%s is refused: %s", refused[0].GetName(), refused[0].GetReason())
	}
	ctx, cancel := context.WithTimeout(ctx, changePatience)
	defer cancel()
	for {
		proxies, err := g.services.AwaitProxies(ctx, &meshv1.AwaitProxiesRequest{Name: name, Timeout: durationpb.New(5 * time.Second)})
		if err != nil {
			return 0, fmt.Errorf("%s is not acknowledged: %w", name, err)
		}
		if len(proxies.GetAcknowledged()) == 2 {
			return time.Since(began), nil
		}
	}
}

// changePatience bounds one change: hundreds of clusters at once take Envoy a while.
const changePatience = time.Minute

func (r *Result) judgeChanges() {
	at := map[string]map[int]Change{endpointChange: {}, serviceChange: {}}
	for _, c := range r.Changes {
		at[c.What][c.Services] = c
	}
	for _, k := range []struct {
		what  string
		limit float64
	}{{endpointChange, 8}, {serviceChange, 20}} {
		for _, services := range []int{2, 500} {
			r.Aims.AtMost(fmt.Sprintf("%s → ACK of both Envoys, %d services, p99, ms", k.what, services), at[k.what][services].P99, k.limit)
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
