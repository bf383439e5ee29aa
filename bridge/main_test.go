package bridge_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	airQuality  = &model.Event{Name: "AirQuality", RPC: "WatchAirQuality"}
	temperature = &model.Field{Name: "Temperature"}
	climate     = &model.Interface{
		Package: "cabin.climate", Name: "Climate", Version: model.Version{Major: 1},
		Methods: []*model.Method{{Name: "Boost", RPC: "Boost"}},
		Events:  []*model.Event{airQuality},
		Fields:  []*model.Field{temperature},
		SOMEIP:  &model.SOMEIPService{ServiceID: 0x4001},
	}
)

func init() { //nolint:gochecknoinits // the field and its notifier refer to each other
	temperature.Notifier = &model.Event{Name: "Temperature", RPC: "WatchTemperature", Field: temperature}
}

// fakeService counts its watches and sends what a test publishes.
type fakeService struct {
	mu      sync.Mutex
	sinks   map[*model.Event]bridge.Sink
	watches int
	end     chan error // ends a watch
}

func newFakeService() *fakeService {
	return &fakeService{sinks: map[*model.Event]bridge.Sink{}, end: make(chan error)}
}

func (s *fakeService) Interface() *model.Interface { return climate }

func (s *fakeService) Invoke(_ context.Context, _ *model.Method, in []byte) ([]byte, error) {
	return append([]byte("re:"), in...), nil
}

func (s *fakeService) Watch(ctx context.Context, e *model.Event, sink bridge.Sink) error {
	s.mu.Lock()
	s.sinks[e] = sink
	s.watches++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.sinks, e)
		s.mu.Unlock()
	}()
	select {
	case err := <-s.end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *fakeService) publish(e *model.Event, it bridge.Item) {
	s.mu.Lock()
	sink := s.sinks[e]
	s.mu.Unlock()
	if sink != nil {
		sink(it)
	}
}

func (s *fakeService) counts() (watching, watches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sinks), s.watches
}

// fakeAdapter imports what a test sends and records what is exposed on it.
type fakeAdapter struct {
	offers chan bridge.Offer
	fail   chan error // ends Import

	mu      sync.Mutex
	exposed map[string]bridge.Service
	causes  map[string]error // of the end of the last exposure
	refuse  error            // what Expose returns
	tries   int
}

func newFakeAdapter() *fakeAdapter {
	return &fakeAdapter{
		offers: make(chan bridge.Offer), fail: make(chan error),
		exposed: map[string]bridge.Service{}, causes: map[string]error{},
	}
}

func (a *fakeAdapter) Import(ctx context.Context, offers chan<- bridge.Offer) error {
	for {
		select {
		case o := <-a.offers:
			offers <- o
		case err := <-a.fail:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *fakeAdapter) Expose(ctx context.Context, inst bridge.Instance, svc bridge.Service) error {
	a.mu.Lock()
	a.tries++
	refuse := a.refuse
	name := inst.MeshName()
	if refuse == nil {
		if a.exposed[name] != nil {
			refuse = errors.New("exposed twice at once")
		} else {
			a.exposed[name] = svc
		}
	}
	a.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	<-ctx.Done()
	a.mu.Lock()
	delete(a.exposed, name)
	a.causes[name] = context.Cause(ctx)
	a.mu.Unlock()
	return nil
}

func (a *fakeAdapter) service(name string) bridge.Service {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.exposed[name]
}

func (a *fakeAdapter) set(refuse error) (tries int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuse = refuse
	return a.tries
}

var (
	ecu  = bridge.Network{Protocol: bridge.SOMEIP, Name: "ecu"}
	body = bridge.Network{Protocol: bridge.SOMEIP, Name: "body"}
	mesh = bridge.Network{Protocol: bridge.GRPC}
)

const leftName = "left.cabin.climate.v1.climate"

func left() bridge.Instance {
	return bridge.Instance{Interface: climate, Name: "left", Origin: bridge.Origin{
		Protocol: bridge.SOMEIP, Network: "ecu", ServiceID: 0x4001, InstanceID: 1, Major: 1, Node: "rear",
	}}
}

func since(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
