package transcode

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"carisma.dev/gateway/codegen/protos/carismav1"
)

// Meta is what a carisma.v1.EventMeta says about an item of a stream.
type Meta struct {
	Session  uint16    // SOME/IP session id, 0 if it has none
	Source   string    // network/ip:port
	Gap      uint32    // items lost to the watcher since the item before
	Received time.Time // zero if not known
	E2E      carismav1.E2EStatus
	Initial  bool // the current value of a field, not a change
}

// AppendMeta appends to a stream item's protobuf bytes its meta member, which has
// the given field number (model.Event.MetaNumber). With number 0, that of an
// event without one, it appends nothing.
func AppendMeta(dst []byte, number int32, m Meta) []byte {
	if number == 0 {
		return dst
	}
	dst = protowire.AppendTag(dst, protowire.Number(number), protowire.BytesType)
	at := len(dst)
	dst = reserve(dst, len(m.Source))
	content := len(dst)
	dst = appendUint(dst, 1, uint64(m.Session))
	if m.Source != "" {
		dst = protowire.AppendTag(dst, 2, protowire.BytesType)
		dst = protowire.AppendString(dst, m.Source)
	}
	dst = appendUint(dst, 3, uint64(m.Gap))
	if !m.Received.IsZero() {
		seconds, nanos := uint64(m.Received.Unix()), uint64(m.Received.Nanosecond())
		dst = protowire.AppendTag(dst, 4, protowire.BytesType)
		inner := len(dst)
		dst = append(dst, 0) // two numbers: never 128 bytes
		dst = appendUint(appendUint(dst, 1, seconds), 2, nanos)
		dst[inner] = byte(len(dst) - inner - 1)
	}
	dst = appendUint(dst, 5, uint64(m.E2E))
	if m.Initial {
		dst = appendUint(dst, 6, 1)
	}
	return patch(dst, at, content)
}

// appendUint appends a number, unless it is the default.
func appendUint(dst []byte, number protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return appendVarint(protowire.AppendTag(dst, number, protowire.VarintType), v)
}
