package model

import "time"

// SOMEIPService is the SOME/IP deployment of an interface.
type SOMEIPService struct {
	ServiceID uint16
	Instances []SOMEIPInstance
	Errors    []SOMEIPError
	// LittleEndian payloads; LengthsInPayloadOrder lets length fields follow.
	LittleEndian          bool
	LengthsInPayloadOrder bool
	StandardCodesOnly     bool
}

// SOMEIPInstance binds an instance name to an instance id.
type SOMEIPInstance struct {
	Name string
	ID   uint16
}

// SOMEIPError names an application error, a return code from 0x20 to 0x5E.
type SOMEIPError struct {
	Name string
	Code uint8
}

// InstanceName returns the name of an instance id. An id without a name is
// called by its number, such as "0x0007".
func (s *SOMEIPService) InstanceName(id uint16) string {
	for _, in := range s.Instances {
		if in.ID == id {
			return in.Name
		}
	}
	return instanceNumberName(id)
}

// InstanceID returns the id of a named instance.
func (s *SOMEIPService) InstanceID(name string) (uint16, bool) {
	for _, in := range s.Instances {
		if in.Name == name {
			return in.ID, true
		}
	}
	return parseInstanceNumberName(name)
}

// SOMEIPElement is the SOME/IP deployment of a method or event.
type SOMEIPElement struct {
	ID          uint16 // method or event id
	Reliable    bool   // TCP; else UDP
	Eventgroups []uint16
	// Request and Response are of a method, Event of an event; nil: messages travel each
	// by itself, in one datagram and unprotected.
	Request, Response, Event *SOMEIPMessage
}

// SOMEIPMessage says how the messages of an element travel in one direction.
type SOMEIPMessage struct {
	TP  *SOMEIPTP  // nil: none is segmented
	E2E *SOMEIPE2E // nil: none is protected
	// Debounce and Retention are the times for messages to share datagrams (nPDU).
	Debounce, Retention time.Duration
}

// SOMEIPTP lets messages go as segments; zero values stand for the defaults.
type SOMEIPTP struct {
	SegmentLength int // bytes of payload
	Separation    time.Duration
	MaxPayload    int // bytes
}

// SOMEIPE2E is the end-to-end protection of messages.
type SOMEIPE2E struct {
	Profile              uint8 // its number: 1, 2, 4, 5, 6, 7, 11, 22 or 44
	DataID               uint32
	DataIDMode           E2EDataIDMode
	DataIDList           [16]byte
	Offset               int // bytes of payload ahead of the E2E header
	MinLength, MaxLength int // bytes from the request id on; 0 for no bound
	MaxDelta             uint32
	Strict               bool
	Vsomeip              bool // with its deviations
	DeliverFailed        bool // what fails its check is delivered with the verdict
}

// E2EDataIDMode is how profiles 1 and 11 include the data id.
type E2EDataIDMode uint8

// The data id modes.
const (
	E2EBoth E2EDataIDMode = iota
	E2EAlt
	E2ELow
	E2ENibble
)

// SOMEIPType is the SOME/IP deployment of a type in one place. Zero values are
// what the reader leaves where a kind has no such attribute; readers fill in
// defaults, translators need none.
type SOMEIPType struct {
	Width       uint8  // bytes of a number or enum, or of a union's type field; 0 for what is usual
	LengthWidth uint8  // bytes of the length field of an array, string, bytes, struct, union or map: 0, 1, 2, 4
	Count       uint32 // elements of a fixed array; 0 for a dynamic one
	Max         uint32 // largest number of elements, or bytes of a string; 0 for no limit
	FixedLength uint32 // bytes of a fixed string; 0 for a dynamic one
	Encoding    StringEncoding
	BOM         bool
	Terminator  bool
	// LittleEndian is the byte order of a number, and that of the length and type
	// field of any other kind.
	LittleEndian bool
	TypeFirst    bool  // a union's type field comes before its length field
	Bits         uint8 // bits of a packed bool or integer, 0 if it has bytes of its own
	Align        uint8 // alignment in bytes from the start of the message, 0 for none
	// DataID is the TLV data id of an optional member, -1 for none.
	DataID int32
}

// StringEncoding is how SOME/IP carries a string.
type StringEncoding uint8

// The string encodings.
const (
	UTF8 StringEncoding = iota
	UTF16BE
	UTF16LE
)

// SOMEIPStruct is the SOME/IP deployment of a struct type.
type SOMEIPStruct struct {
	LengthWidth uint8
	// DynamicLength makes the writer of TLV members choose the width of their
	// length fields (wire types 5 to 7).
	DynamicLength bool
}
