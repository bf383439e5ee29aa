package sd

import "encoding/binary"

// EntryType is the type of an entry. Stop and negative forms are not types of
// their own: they have TTL 0.
type EntryType uint8

// Entry types.
const (
	FindService  EntryType = 0x00
	OfferService EntryType = 0x01 // with TTL 0: StopOffer
	Subscribe    EntryType = 0x06 // with TTL 0: StopSubscribe
	SubscribeAck EntryType = 0x07 // with TTL 0: SubscribeNack
)

// Entry is one entry of a message. Which of the fields in its last four bytes
// hold depends on the type: Minor for service entries and unknown types, the
// others for eventgroup entries.
type Entry struct {
	Type              EntryType
	Index1, Index2    uint8 // first option of each run
	Count1, Count2    uint8 // options in each run, 0 to 15
	Service, Instance uint16
	Major             uint8
	TTL               uint32 // seconds, 24 bits

	Minor uint32 // service entries

	Eventgroup  uint16 // eventgroup entries
	Counter     uint8  // tells parallel subscriptions apart, 0 to 15 (SUB-8)
	InitialData bool   // initial data requested
	Reserved    uint16 // reserved bits of bytes 12 and 13: an Ack echoes them (SUB-4)
}

const (
	initialDataBit = 0x80
	counterMask    = 0x0F
	reservedMask   = 0xFF70
)

// IsEventgroup reports whether the entry is about an eventgroup.
func (e *Entry) IsEventgroup() bool { return e.Type == Subscribe || e.Type == SubscribeAck }

// parseEntry reads the 16 bytes at the start of b.
func parseEntry(b []byte) Entry {
	e := Entry{
		Type:   EntryType(b[0]),
		Index1: b[1], Index2: b[2],
		Count1: b[3] >> 4, Count2: b[3] & 0x0F,
		Service: binary.BigEndian.Uint16(b[4:]), Instance: binary.BigEndian.Uint16(b[6:]),
		Major: b[8],
		TTL:   binary.BigEndian.Uint32(b[8:]) & maxTTL,
	}
	if e.IsEventgroup() {
		e.parseEventgroup(b[12:])
	} else {
		e.Minor = binary.BigEndian.Uint32(b[12:])
	}
	return e
}

func (e *Entry) encodable() bool {
	return e.Count1 <= 0x0F && e.Count2 <= 0x0F && e.TTL <= maxTTL && e.Counter <= counterMask
}

func (e *Entry) append(b []byte) []byte {
	b = append(b, byte(e.Type), e.Index1, e.Index2, e.Count1<<4|e.Count2)
	b = binary.BigEndian.AppendUint16(b, e.Service)
	b = binary.BigEndian.AppendUint16(b, e.Instance)
	b = binary.BigEndian.AppendUint32(b, uint32(e.Major)<<24|e.TTL)
	if e.IsEventgroup() {
		return e.appendEventgroup(b)
	}
	return binary.BigEndian.AppendUint32(b, e.Minor)
}
