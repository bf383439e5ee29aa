package capture

import (
	"net/netip"
	"slices"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

// ports knows which endpoints carry SOME/IP.
type ports struct {
	cfg    Config
	learnt map[learnt]struct{} // from service discovery
}

type learnt struct {
	transport Transport
	at        netip.AddrPort
}

func newPorts(cfg Config) *ports {
	return &ports{cfg: cfg, learnt: map[learnt]struct{}{}}
}

// known reports whether what a flow carries is SOME/IP, whatever it looks like.
func (p *ports) known(f Flow) bool {
	given := p.cfg.UDP
	if f.Transport == TCP {
		given = p.cfg.TCP
	}
	for _, at := range []netip.AddrPort{f.From, f.To} {
		if slices.Contains(given, at.Port()) {
			return true
		}
		if p.cfg.Only {
			continue
		}
		if _, ok := p.learnt[learnt{f.Transport, at}]; ok || f.Transport == UDP && at.Port() == portSD {
			return true
		}
	}
	return false
}

// possible reports whether a flow may carry SOME/IP, if it looks like it.
func (p *ports) possible(f Flow) bool {
	return !p.cfg.Only && !slices.Contains(p.cfg.Ignore, f.From.Port()) && !slices.Contains(p.cfg.Ignore, f.To.Port())
}

// learn takes the endpoints of services and subscribers out of a message of
// service discovery.
func (p *ports) learn(m someip.Message, bytes []byte) {
	if m.Service != someip.ServiceSD || m.Method != someip.MethodSD || p.cfg.Only {
		return
	}
	message, _, err := sd.Parse(bytes)
	if err != nil {
		return
	}
	for i := range message.Options {
		o := &message.Options[i]
		if (!o.IsEndpoint() && !o.IsMulticast()) || o.Endpoint.Port() == 0 || len(p.learnt) >= maxLearnt {
			continue
		}
		p.learnt[learnt{Transport(o.Proto), o.Endpoint}] = struct{}{}
	}
}

// looksLike reports whether a datagram holds messages without fault, from its
// first byte to its last.
func looksLike(b []byte) bool {
	for len(b) > 0 {
		m, rest, err := someip.ParseMessage(b)
		if err != nil || m.Validate() != nil {
			return false
		}
		b = rest
	}
	return true
}
