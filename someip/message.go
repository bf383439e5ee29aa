package someip

// Limits of the UDP binding.
const (
	// MaxUDPPayload is the longest payload of an unsegmented message on UDP
	// (UDP-2). Longer ones need TP or TCP.
	MaxUDPPayload = 1400
	// MaxUDPDatagram is the longest datagram to send, whatever number of
	// messages it holds: peers discard longer ones whole (UDP-3).
	MaxUDPDatagram = HeaderSize + MaxUDPPayload
	// MaxPayload is the longest payload that the Length field can express.
	MaxPayload = 1<<32 - 1 - minLength
)

// Message is a SOME/IP message.
type Message struct {
	Header
	Payload []byte // of a parsed message: a view of the bytes that were parsed
}

// ParseMessage reads the message at the start of b, one of perhaps several in a
// datagram (UDP-1), and returns what follows it. The payload is a view of b.
//
// It checks framing only: ErrShort if fewer bytes are there than the Length
// field says, ErrLength if that is below 8. After an error the boundaries in
// the rest of the datagram are unknown, so rest is nil: count the tail and drop
// it, and answer nothing from it (HDR-2, UDP-7). The header is returned as far
// as it was read.
func ParseMessage(b []byte) (m Message, rest []byte, err error) {
	m.Header, err = ParseHeader(b)
	if err != nil {
		return m, nil, err
	}
	size := m.WireSize() // 64 bits: Length+8 must not wrap
	if size > uint64(len(b)) {
		return m, nil, &ParseError{Offset: len(b), Reason: ErrShort}
	}
	m.Payload = b[HeaderSize:size:size]
	return m, b[size:], nil
}

// Size returns the bytes of the message on the wire.
func (m Message) Size() int { return HeaderSize + len(m.Payload) }

// Append appends the message to b. The Length field is computed from the
// payload, which must not be longer than MaxPayload.
func (m Message) Append(b []byte) []byte {
	m.Length = uint32(minLength + len(m.Payload))
	return append(m.Header.Append(b), m.Payload...)
}

// CheckUDP returns ErrTooLong if the message does not fit a datagram. IP
// fragmentation is never relied on (UDP-2).
func (m Message) CheckUDP() error {
	if len(m.Payload) > MaxUDPPayload {
		return ErrTooLong
	}
	return nil
}

// NewRequest returns a request to be answered. The payload is not copied.
func NewRequest(service, method uint16, major uint8, client, session uint16, payload []byte) Message {
	return newMessage(service, method, major, client, session, Request, payload)
}

// NewRequestNoReturn returns a fire-and-forget request. The payload is not copied.
func NewRequestNoReturn(service, method uint16, major uint8, client, session uint16, payload []byte) Message {
	return newMessage(service, method, major, client, session, RequestNoReturn, payload)
}

// NewNotification returns an event or notifier. Its client id is 0, receivers must
// not look at it (HDR-5). The payload is not copied.
func NewNotification(service, event uint16, major uint8, session uint16, payload []byte) Message {
	return newMessage(service, event, major, 0, session, Notification, payload)
}

// Response returns the answer to the request h: message id, request id and
// interface version are those of the request (SES-3). The payload is not copied.
func (h Header) Response(payload []byte) Message {
	return h.reply(Response, OK, payload)
}

// Failure returns the negative answer to the request h. An exception is of type
// ERROR, else the code travels in a RESPONSE (RC-3). Errors that a stack makes
// itself carry no payload (RC-4), those of an application may (RC-5). The
// payload is not copied.
func (h Header) Failure(code ReturnCode, exception bool, payload []byte) Message {
	if exception {
		return h.reply(Error, code, payload)
	}
	return h.reply(Response, code, payload)
}

func (h Header) reply(t MessageType, code ReturnCode, payload []byte) Message {
	h.ProtocolVersion = ProtocolVersion // ours, also when theirs was wrong (HDR-3)
	h.Type, h.Code = t, code
	h.Length = uint32(minLength + len(payload))
	return Message{Header: h, Payload: payload}
}

func newMessage(service, method uint16, major uint8, client, session uint16, t MessageType, payload []byte) Message {
	return Message{Header: Header{
		Service: service, Method: method, Length: uint32(minLength + len(payload)),
		Client: client, Session: session,
		ProtocolVersion: ProtocolVersion, InterfaceVersion: major, Type: t,
	}, Payload: payload}
}

// Result returns the return code of a reply as callers should see it: an ERROR
// with E_OK contradicts itself and counts as E_NOT_OK (RC-2).
func (h Header) Result() ReturnCode {
	if h.Type.Base() == Error && h.Code == OK {
		return NotOK
	}
	return h.Code
}
