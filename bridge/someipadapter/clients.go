package someipadapter

import (
	"errors"
	"sync"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// clients are those of all instances that were called, also of such that went:
// with its session counter going on, an answer to a call from before a restart
// matches no call after it. It is safe for concurrent use.
type clients struct {
	network *runtime.Network

	mu  sync.Mutex
	all map[someip.InstanceKey]*pooled
}

type pooled struct {
	*runtime.Client
	held bool
}

func newClients(n *runtime.Network) *clients {
	return &clients{network: n, all: map[someip.InstanceKey]*pooled{}}
}

// hold returns the client of an instance, until release. Where there is no client
// id left, one that nobody holds gives up its own.
func (c *clients) hold(key someip.InstanceKey) (*runtime.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.all[key]; p != nil {
		p.held = true
		return p.Client, nil
	}
	client, err := c.network.Client(key)
	if errors.Is(err, runtime.ErrNoClientID) && c.evict() {
		client, err = c.network.Client(key)
	}
	if err != nil {
		return nil, err
	}
	c.all[key] = &pooled{client, true}
	return client, nil
}

func (c *clients) release(key someip.InstanceKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.all[key]; p != nil {
		p.held = false
	}
}

// forget closes the client of an instance, unless somebody holds it.
func (c *clients) forget(key someip.InstanceKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.all[key]; p != nil && !p.held {
		_ = p.Close() // never fails
		delete(c.all, key)
	}
}

func (c *clients) evict() bool {
	for key, p := range c.all {
		if !p.held {
			_ = p.Close() // never fails
			delete(c.all, key)
			return true
		}
	}
	return false
}

func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, p := range c.all {
		_ = p.Close() // never fails
		delete(c.all, key)
	}
}
