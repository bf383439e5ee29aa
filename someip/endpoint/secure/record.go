package secure

import "encoding/binary"

// The parts of a DTLS record header (RFC 6347 4.1) that tell what a datagram is:
// content type, version, epoch, sequence number, length; and of the handshake
// message in it the type.
const (
	recordHeader       = 13
	contentHandshake   = 22
	contentApplication = 23
	clientHello        = 1
)

// epoch is that of the first record of a datagram, and false if there is none.
// Epoch 0 is not encrypted.
func epoch(b []byte) (uint16, bool) {
	if len(b) < recordHeader || b[1] != 0xFE {
		return 0, false
	}
	return binary.BigEndian.Uint16(b[3:]), true
}

// beginsHandshake reports whether a datagram is that of a client that begins.
func beginsHandshake(b []byte) bool {
	e, ok := epoch(b)
	return ok && e == 0 && len(b) > recordHeader && b[0] == contentHandshake && b[recordHeader] == clientHello
}
