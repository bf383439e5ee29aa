package sd

import (
	"net/netip"
	"time"

	"carisma.dev/gateway/someip"
)

// ownAddressAgain is how often it is told that a peer claims our address.
const ownAddressAgain = time.Minute

// claimed tells that a peer says it is at our own address: at instead of its own.
func (m *Machine) claimed(now time.Time, told *time.Time, from, at netip.AddrPort, key someip.InstanceKey) {
	if told.IsZero() || now.Sub(*told) >= ownAddressAgain {
		*told = now
		m.emit(OwnAddressClaimed{Peer: from, Claimed: at, Key: key})
	}
}
