package someip

import "encoding/binary"

const (
	// HeaderSize is the size of the header in bytes.
	HeaderSize = 16
	// ProtocolVersion is the only protocol version there is.
	ProtocolVersion uint8 = 1

	lengthOffset = 8 // the Length field counts the bytes from here (Client ID)
	minLength    = HeaderSize - lengthOffset
)

// Header is the header that every SOME/IP message starts with.
//
//	 0               1               2               3
//	+-------------------------------+-------------------------------+
//	|          Service ID           |           Method ID           |
//	+-------------------------------+-------------------------------+
//	|               Length (bytes from Client ID on)                |
//	+-------------------------------+-------------------------------+
//	|           Client ID           |          Session ID           |
//	+---------------+---------------+---------------+---------------+
//	| Protocol Vers.| Interface V.  | Message Type  |  Return Code  |
//	+---------------+---------------+---------------+---------------+
type Header struct {
	Service          uint16
	Method           uint16 // of an event or notifier: its event id
	Length           uint32 // bytes after this field; at least 8
	Client           uint16
	Session          uint16
	ProtocolVersion  uint8
	InterfaceVersion uint8 // the major version of the interface (HDR-4)
	Type             MessageType
	Code             ReturnCode
}

// WireSize returns the bytes that the whole message has on the wire by its Length
// field: up to 2^32 + 7, so a stream reader must bound it before using it.
func (h Header) WireSize() uint64 { return uint64(h.Length) + lengthOffset }

// ParseHeader reads the header at the start of b. It fails with ErrShort if b
// has not all of its 16 bytes and with ErrLength if the Length field cannot be
// right (HDR-1). It judges nothing else: see Validate, which comes later in the
// order of checks.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, &ParseError{Offset: len(b), Reason: ErrShort}
	}
	h := Header{
		Service:          binary.BigEndian.Uint16(b),
		Method:           binary.BigEndian.Uint16(b[2:]),
		Length:           binary.BigEndian.Uint32(b[4:]),
		Client:           binary.BigEndian.Uint16(b[8:]),
		Session:          binary.BigEndian.Uint16(b[10:]),
		ProtocolVersion:  b[12],
		InterfaceVersion: b[13],
		Type:             MessageType(b[14]),
		Code:             ReturnCode(b[15]),
	}
	if h.Length < minLength {
		return h, &ParseError{Offset: 4, Reason: ErrLength}
	}
	return h, nil
}

// Append appends the 16 bytes of the header to b, fields as they are.
func (h Header) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, h.Service)
	b = binary.BigEndian.AppendUint16(b, h.Method)
	b = binary.BigEndian.AppendUint32(b, h.Length)
	b = binary.BigEndian.AppendUint16(b, h.Client)
	b = binary.BigEndian.AppendUint16(b, h.Session)
	return append(b, h.ProtocolVersion, h.InterfaceVersion, byte(h.Type), byte(h.Code))
}

// Validate checks what can be checked without knowing the service, in the order
// of someip 1.6: protocol version (ErrProtocolVersion, HDR-3), message type
// (ErrMessageType), return code (ErrReturnCode). On a stream a failure means
// that framing is lost (TCP-5); in a datagram the rest of it cannot be trusted.
func (h Header) Validate() error {
	switch {
	case h.ProtocolVersion != ProtocolVersion:
		return &ParseError{Offset: 12, Reason: ErrProtocolVersion}
	case !h.Type.Known():
		return &ParseError{Offset: 14, Reason: ErrMessageType}
	case !h.Code.Valid():
		return &ParseError{Offset: 15, Reason: ErrReturnCode}
	}
	return nil
}

// MayAnswer reports whether the message may be answered at all: only a request
// may, and none that came with a return code gets an error back (RC-1, RC-6).
// What came by multicast is never answered either; only the receiver knows that.
func (h Header) MayAnswer() bool { return h.Type == Request && h.Code == OK }
