package tp

import (
	"time"

	"carisma.dev/gateway/someip"
)

// key tells the messages apart that are under way at the same time (TP-5). The
// session is not part of it: of a key there is one message at a time.
type key struct {
	path            Path
	service, method uint16
	client          uint16
	protocol, major uint8
	kind            someip.MessageType
}

func keyOf(path Path, h someip.Header) key {
	return key{
		path: path, service: h.Service, method: h.Method, client: h.Client,
		protocol: h.ProtocolVersion, major: h.InterfaceVersion, kind: h.Type.Base(),
	}
}

// finished remembers the messages that were over last, so that what comes of them
// late does not begin them again.
type finished struct {
	ring [64]struct {
		key     key
		session uint16
		until   time.Time
	}
	next int
}

// add notes that a message is over. Without session nothing is noted: the next
// message looks the same.
func (f *finished) add(k key, session uint16, until time.Time) {
	if session == 0 {
		return
	}
	e := &f.ring[f.next]
	e.key, e.session, e.until = k, session, until
	f.next = (f.next + 1) % len(f.ring)
}

func (f *finished) has(k key, session uint16, now time.Time) bool {
	for i := range f.ring {
		if e := &f.ring[i]; e.session == session && now.Before(e.until) && e.key == k {
			return true
		}
	}
	return false
}

func (f *finished) forget(same func(key) bool) {
	for i := range f.ring {
		if same(f.ring[i].key) {
			f.ring[i].session = 0
		}
	}
}
