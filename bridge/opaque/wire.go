package opaque

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"carisma.dev/gateway/someip"
)

// Errors of the Parse functions.
var (
	ErrMalformed  = errors.New("no message of " + Name)
	ErrMethod     = errors.New("method: an id from 0x0001 to 0x7ffe")
	ErrEvent      = errors.New("event: an id from 0x8001 to 0xfffe")
	ErrEventgroup = errors.New("eventgroup: an id from 0x0001 to 0xfffe")
)

// Request is a request to a method, OpaqueCallRequest or OpaqueSendRequest.
type Request struct {
	Method   uint16
	Payload  []byte
	Reliable bool
}

// Append appends the protobuf wire bytes.
func (r Request) Append(b []byte) []byte {
	return appendMessage(b, r.Method, r.Payload, r.Reliable)
}

// ParseRequest reads a request. The payload is a view.
func ParseRequest(b []byte) (Request, error) {
	id, payload, reliable, err := parseMessage(b)
	if err == nil && (id == 0 || id >= 0x7FFF) {
		err = ErrMethod
	}
	return Request{uint16(id), payload, reliable}, err
}

// Event is an item of a watch, OpaqueWatchResponse without meta.
type Event struct {
	ID       uint16
	Payload  []byte
	Reliable bool
}

// Append appends the protobuf wire bytes.
func (e Event) Append(b []byte) []byte { return appendMessage(b, e.ID, e.Payload, e.Reliable) }

// ParseEvent reads an item. The payload is a view.
func ParseEvent(b []byte) (Event, error) {
	id, payload, reliable, err := parseMessage(b)
	if err == nil && (id > math.MaxUint16 || !someip.IsEvent(uint16(id))) {
		err = ErrEvent
	}
	return Event{uint16(id), payload, reliable}, err
}

// AppendResponse appends the protobuf wire bytes of an OpaqueCallResponse.
func AppendResponse(b, payload []byte) []byte { return appendBytes(b, 1, payload) }

// ParseResponse returns the payload of an OpaqueCallResponse, as a view.
func ParseResponse(b []byte) (payload []byte, err error) {
	err = fields(b, func(f field) error {
		if f.number == 1 && f.typ == protowire.BytesType {
			payload = f.data
		}
		return nil
	})
	return payload, err
}

// Subscription is an OpaqueWatchRequest.
type Subscription struct {
	Eventgroup uint16
	Events     []uint16 // nil: all
}

// Append appends the protobuf wire bytes.
func (s Subscription) Append(b []byte) []byte {
	b = appendNumber(b, 1, uint64(s.Eventgroup))
	for _, e := range s.Events {
		b = protowire.AppendTag(b, 2, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(e))
	}
	return b
}

// maxEvents is how many events one watch may list; there are no more ids.
const maxEvents = 0x8000

// ParseSubscription reads a subscription.
func ParseSubscription(b []byte) (Subscription, error) {
	var s Subscription
	event := func(v uint64) error {
		if v > math.MaxUint16 || !someip.IsEvent(uint16(v)) || len(s.Events) == maxEvents {
			return ErrEvent
		}
		s.Events = append(s.Events, uint16(v))
		return nil
	}
	err := fields(b, func(f field) error {
		switch {
		case f.number == 1 && f.typ == protowire.VarintType:
			if f.value > 0xFFFE {
				return ErrEventgroup
			}
			s.Eventgroup = uint16(f.value)
		case f.number == 2 && f.typ == protowire.VarintType:
			return event(f.value)
		case f.number == 2 && f.typ == protowire.BytesType: // packed
			for rest := f.data; len(rest) > 0; {
				v, n := protowire.ConsumeVarint(rest)
				if n < 0 {
					return ErrMalformed
				}
				if err := event(v); err != nil {
					return err
				}
				rest = rest[n:]
			}
		}
		return nil
	})
	if err == nil && s.Eventgroup == 0 {
		err = ErrEventgroup
	}
	return s, err
}

// Description is an OpaqueDescribeResponse.
type Description struct {
	Key      someip.InstanceKey
	Minor    uint32
	Network  string
	UDP, TCP bool
}

// Append appends the protobuf wire bytes.
func (d Description) Append(b []byte) []byte {
	b = appendNumber(b, 1, uint64(d.Key.Service))
	b = appendNumber(b, 2, uint64(d.Key.Instance))
	b = appendNumber(b, 3, uint64(d.Key.Major))
	b = appendNumber(b, 4, uint64(d.Minor))
	b = appendBytes(b, 5, []byte(d.Network))
	b = appendNumber(b, 6, protowire.EncodeBool(d.UDP))
	return appendNumber(b, 7, protowire.EncodeBool(d.TCP))
}

// ParseDescription reads a description.
func ParseDescription(b []byte) (d Description, err error) {
	err = fields(b, func(f field) error {
		switch f.number {
		case 1:
			d.Key.Service = uint16(f.value)
		case 2:
			d.Key.Instance = uint16(f.value)
		case 3:
			d.Key.Major = uint8(f.value)
		case 4:
			d.Minor = uint32(f.value)
		case 5:
			d.Network = string(f.data)
		case 6:
			d.UDP = f.value != 0
		case 7:
			d.TCP = f.value != 0
		}
		return nil
	})
	return d, err
}

// appendMessage and parseMessage are of messages with an id, a payload and a
// transport.
func appendMessage(b []byte, id uint16, payload []byte, reliable bool) []byte {
	b = appendNumber(b, 1, uint64(id))
	b = appendBytes(b, 2, payload)
	return appendNumber(b, 3, protowire.EncodeBool(reliable))
}

func parseMessage(b []byte) (id uint64, payload []byte, reliable bool, err error) {
	err = fields(b, func(f field) error {
		switch {
		case f.number == 1 && f.typ == protowire.VarintType:
			id = f.value
		case f.number == 2 && f.typ == protowire.BytesType:
			payload = f.data
		case f.number == 3 && f.typ == protowire.VarintType:
			reliable = f.value != 0
		}
		return nil
	})
	return id, payload, reliable, err
}

func appendNumber(b []byte, number protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
}

func appendBytes(b []byte, number protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
}

// field is one member of a message: value of a varint, data of what has a length.
type field struct {
	number int
	typ    protowire.Type
	value  uint64
	data   []byte
}

// fields calls fn with each member. What is of another type is passed over.
func fields(b []byte, fn func(field) error) error {
	for at := 0; at < len(b); {
		number, typ, n := protowire.ConsumeTag(b[at:])
		f := field{number: int(number), typ: typ}
		if n < 0 {
			return fmt.Errorf("%w: byte %d: %w", ErrMalformed, at, protowire.ParseError(n))
		}
		at += n
		switch f.typ {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(b[at:])
		case protowire.BytesType:
			f.data, n = protowire.ConsumeBytes(b[at:])
		default:
			n = protowire.ConsumeFieldValue(number, typ, b[at:])
		}
		if n < 0 {
			return fmt.Errorf("%w: byte %d: %w", ErrMalformed, at, protowire.ParseError(n))
		}
		at += n
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}
