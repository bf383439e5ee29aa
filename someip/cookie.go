package someip

import (
	"bytes"
	"strings"
)

// Magic cookies: whole messages, 16 bytes each, by which a receiver that lost
// the framing of a TCP stream finds it again. They are recognised and skipped
// always, never delivered and never answered.
const (
	// ClientCookie is what a client sends.
	ClientCookie = "\xff\xff\x00\x00\x00\x00\x00\x08\xde\xad\xbe\xef\x01\x01\x01\x00"
	// ServerCookie is what a server sends.
	ServerCookie = "\xff\xff\x80\x00\x00\x00\x00\x08\xde\xad\xbe\xef\x01\x01\x02\x00"
)

// IsCookie reports whether b starts with a magic cookie of either side.
func IsCookie(b []byte) bool {
	return len(b) >= HeaderSize &&
		(string(b[:HeaderSize]) == ClientCookie || string(b[:HeaderSize]) == ServerCookie)
}

// FindCookie returns the offset in b of the first cookie (ClientCookie or
// ServerCookie, as the peer sends), and true. If there is none it returns the
// number of bytes that can be thrown away, because no cookie can start in them,
// and false.
func FindCookie(b []byte, cookie string) (int, bool) {
	if i := bytes.Index(b, []byte(cookie)); i >= 0 {
		return i, true
	}
	for i := max(0, len(b)-len(cookie)+1); i < len(b); i++ {
		if strings.HasPrefix(cookie, string(b[i:])) {
			return i, false
		}
	}
	return len(b), false
}
