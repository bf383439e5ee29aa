// Package someipadapter speaks SOME/IP on one network: it imports the service
// instances that service discovery finds there, typed where their interface is
// known and opaque where it is not, and exposes as native offers those of other
// protocols that have SOME/IP ids and those of other networks that it is told to.
package someipadapter

import (
	"log/slog"
	"sync"
	"time"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// Defaults of a [Config].
const (
	DefaultRequestTimeout = 5 * time.Second
	DefaultMaxRequests    = 256
)

// maxMajor is the highest major version that SOME/IP can tell: 0xFF is any.
const maxMajor = 0xFE

// Config configures an [Adapter].
type Config struct {
	Network *runtime.Network
	// Interfaces are those that offers are recognised by. The set may grow.
	Interfaces *bridge.Interfaces
	Node       string // name of this node
	// IDs returns the ids under which an instance of another SOME/IP network is
	// offered here, false if it is not to be. Nil: none is.
	IDs func(bridge.Instance) (someip.InstanceKey, bool)
	// RequestTimeout bounds the call behind a request to an exposed instance:
	// SOME/IP requests have no deadline.
	RequestTimeout time.Duration // 0 for the default
	// MaxRequests is how many requests to one exposed instance are served at
	// once; more are refused.
	MaxRequests int          // 0 for the default
	Logger      *slog.Logger // nil for none
}

// Adapter is the adapter of one SOME/IP network.
type Adapter struct {
	cfg     Config
	network *runtime.Network
	log     *slog.Logger
	sights  *sightings
	opened  time.Time

	mu     sync.Mutex
	codecs map[*model.Interface]*codecs
}

var _ bridge.Adapter = (*Adapter)(nil)

// New returns the adapter of a network.
func New(cfg Config) *Adapter {
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = DefaultRequestTimeout
	}
	if cfg.MaxRequests == 0 {
		cfg.MaxRequests = DefaultMaxRequests
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Adapter{
		cfg:     cfg,
		network: cfg.Network,
		log:     cfg.Logger.With("network", cfg.Network.Name()),
		sights:  newSightings(),
		opened:  time.Now(),
		codecs:  map[*model.Interface]*codecs{},
	}
}

// Network is where the table attaches the adapter.
func (a *Adapter) Network() bridge.Network {
	return bridge.Network{Protocol: bridge.SOMEIP, Name: a.network.Name()}
}

// codecsOf returns the translators of an interface.
func (a *Adapter) codecsOf(iface *model.Interface) *codecs {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.codecs[iface]
	if c == nil {
		c = newCodecs(iface)
		a.codecs[iface] = c
	}
	return c
}
