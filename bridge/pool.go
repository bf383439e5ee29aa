package bridge

import (
	"context"
	"slices"
	"sync"
	"time"

	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
)

// Pool is several interchangeable services as one (CAR-52): calls go to each in
// turn, a watch stays with one and goes on with another when that one goes (CAR-51).
// It is safe for concurrent use.
type Pool struct {
	iface *model.Interface

	mu      sync.Mutex
	members []poolMember // in order of arrival
	next    int
	reason  string // why the last member went
	since   time.Time
}

type poolMember struct {
	name string
	svc  Service
}

var _ Service = (*Pool)(nil)

// NewPool returns a pool without members.
func NewPool(iface *model.Interface) *Pool {
	return &Pool{iface: iface, reason: "no replica came yet", since: time.Now()}
}

// Add adds a member, in place of one of the same name, and returns how many there
// are.
func (p *Pool) Add(name string, svc Service) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(name)
	p.members = append(p.members, poolMember{name, svc})
	return len(p.members)
}

// Remove removes a member that went and returns how many are left.
func (p *Pool) Remove(name, reason string, since time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(name)
	p.reason, p.since = reason, since
	return len(p.members)
}

func (p *Pool) drop(name string) {
	p.members = slices.DeleteFunc(p.members, func(m poolMember) bool { return m.name == name })
}

// take returns the member whose turn it is.
func (p *Pool) take() (Service, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.members) == 0 {
		return nil, status.Unavailable(p.reason, p.since)
	}
	p.next = (p.next + 1) % len(p.members)
	return p.members[p.next].svc, nil
}

func (p *Pool) has(svc Service) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.members, func(m poolMember) bool { return m.svc == svc })
}

// Interface implements [Service].
func (p *Pool) Interface() *model.Interface { return p.iface }

// Invoke implements [Service].
func (p *Pool) Invoke(ctx context.Context, m *model.Method, in []byte) ([]byte, error) {
	svc, err := p.take()
	if err != nil {
		return nil, err
	}
	return svc.Invoke(ctx, m, in)
}

// failoverTime is how long the end of a watch may be ahead of the news that its
// member went.
const failoverTime = 100 * time.Millisecond

// Watch implements [Service].
func (p *Pool) Watch(ctx context.Context, e *model.Event, sink Sink) error {
	for {
		svc, err := p.take()
		if err != nil {
			return err
		}
		err = svc.Watch(ctx, e, sink)
		for end := time.Now().Add(failoverTime); ctx.Err() == nil && p.has(svc) && time.Now().Before(end); {
			sleep(ctx, failoverTime/20)
		}
		if ctx.Err() != nil || p.has(svc) {
			return err
		}
	}
}
