package sd

import "carisma.dev/gateway/someip"

// Service entries.
//
//	 0               1               2               3
//	+---------------+---------------+---------------+-------+-------+
//	|     Type      |   Index 1st   |   Index 2nd   | # 1st | # 2nd |
//	+---------------+---------------+---------------+-------+-------+
//	|          Service ID           |          Instance ID          |
//	+---------------+---------------+-------------------------------+
//	|     Major     |                 TTL (seconds)                 |
//	+---------------+-----------------------------------------------+
//	|                             Minor                             |
//	+---------------------------------------------------------------+

// findEntry asks for an instance; the key may hold wildcards. Minor is always
// ANY: versions are matched by the major only (SV-3, CL-7, case 65).
func findEntry(k someip.InstanceKey, ttl uint32) Entry {
	return Entry{
		Type: FindService, Service: k.Service, Instance: k.Instance, Major: k.Major,
		TTL: ttl, Minor: someip.AnyMinor,
	}
}

// offerEntry offers an instance, or with TTL 0 withdraws it.
func offerEntry(k someip.InstanceKey, minor, ttl uint32) Entry {
	return Entry{
		Type: OfferService, Service: k.Service, Instance: k.Instance, Major: k.Major,
		TTL: ttl, Minor: minor,
	}
}

// Key returns the instance that the entry is about. In a Find it may hold wildcards.
func (e *Entry) Key() someip.InstanceKey {
	return someip.InstanceKey{Service: e.Service, Instance: e.Instance, Major: e.Major}
}
