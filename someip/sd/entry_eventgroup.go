package sd

import (
	"encoding/binary"

	"carisma.dev/gateway/someip"
)

// Eventgroup entries: the first 12 bytes are those of service entries, then
//
//	+---------------+-+-----+-------+-------------------------------+
//	|   Reserved    |I| Res |Counter|         Eventgroup ID         |
//	+---------------+-+-----+-------+-------------------------------+

func (e *Entry) parseEventgroup(b []byte) {
	word := binary.BigEndian.Uint16(b)
	e.Reserved = word & reservedMask
	e.InitialData = word&initialDataBit != 0
	e.Counter = uint8(word & counterMask)
	e.Eventgroup = binary.BigEndian.Uint16(b[2:])
}

func (e *Entry) appendEventgroup(b []byte) []byte {
	word := e.Reserved&reservedMask | uint16(e.Counter)
	if e.InitialData {
		word |= initialDataBit
	}
	b = binary.BigEndian.AppendUint16(b, word)
	return binary.BigEndian.AppendUint16(b, e.Eventgroup)
}

// subscribeEntry subscribes to an eventgroup, or with TTL 0 ends the
// subscription. The counter is always 0: one subscription per eventgroup, as
// some peers read no counter (SUB-8).
func subscribeEntry(k someip.InstanceKey, eventgroup uint16, ttl uint32) Entry {
	return Entry{
		Type: Subscribe, Service: k.Service, Instance: k.Instance, Major: k.Major,
		TTL: ttl, Eventgroup: eventgroup,
	}
}

// ackEntry answers the Subscribe e: it echoes all but the options (SUB-4).
func ackEntry(e *Entry) Entry {
	ack := *e
	ack.Type = SubscribeAck
	ack.Index1, ack.Index2, ack.Count1, ack.Count2 = 0, 0, 0, 0
	return ack
}

// nackEntry refuses the Subscribe e: as the Ack, with TTL 0.
func nackEntry(e *Entry) Entry {
	nack := ackEntry(e)
	nack.TTL = 0
	return nack
}
