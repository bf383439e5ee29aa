package runtime

import (
	"net/netip"
	"time"

	"carisma.dev/gateway/someip/endpoint"
)

// ownAddressAgain is how often it is told that another stack has our address.
const ownAddressAgain = time.Minute

// ownAddress notices a stack that comes after us and shares the SD port of our address:
// the system lets it, as vsomeip's socket does. One that was there before is an error
// of the start.
type ownAddress struct {
	echoes endpoint.Echoes // what we sent to the group, which we hear too
	told   time.Time       // guarded by n.mu
}

// checkEcho looks at a multicast that seems to come from ourselves (RB-9, 10.1).
func (n *Network) checkEcho(from netip.AddrPort, b []byte) {
	if from != n.own(n.cfg.SD.Port) || n.discovery.shared.echoes.Own(b) {
		return
	}
	now := n.now()
	n.mu.Lock()
	tell := now.Sub(n.discovery.shared.told) >= ownAddressAgain
	if tell {
		n.discovery.shared.told = now
	}
	n.mu.Unlock()
	if !tell {
		return
	}
	var who any = "no other socket of this host: a host that was given our address"
	if u, ok := n.discovery.unicast.(interface{ Alone() error }); ok {
		if err := u.Alone(); err != nil {
			who = err
		}
	}
	n.log.Warn("sd.own_address", "peer", from,
		"problem", "another SOME/IP stack speaks from our address: services of both fail at random", "who", who)
}
