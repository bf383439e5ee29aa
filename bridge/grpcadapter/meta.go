package grpcadapter

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/carismav1"
)

// Field numbers of carisma.v1.EventMeta.
const (
	metaSession  = 1
	metaSource   = 2
	metaGap      = 3
	metaReceived = 4
	metaE2E      = 5
	metaInitial  = 6
)

// Field numbers of google.protobuf.Timestamp.
const (
	timestampSeconds = 1
	timestampNanos   = 2
)

// appendMeta appends the carisma.v1.EventMeta member of a stream's message,
// where the message has one.
func appendMeta(b []byte, e *model.Event, it bridge.Item) []byte {
	if e.MetaNumber == 0 {
		return b
	}
	meta := make([]byte, 0, metaSize)
	meta = appendUint(meta, metaSession, uint64(it.Session))
	if it.Source != "" {
		meta = protowire.AppendTag(meta, metaSource, protowire.BytesType)
		meta = protowire.AppendString(meta, it.Source)
	}
	meta = appendUint(meta, metaGap, uint64(it.Gap))
	if !it.Received.IsZero() {
		var at [24]byte
		t := appendUint(at[:0], timestampSeconds, uint64(it.Received.Unix()))
		t = appendUint(t, timestampNanos, uint64(it.Received.Nanosecond()))
		meta = protowire.AppendTag(meta, metaReceived, protowire.BytesType)
		meta = protowire.AppendBytes(meta, t)
	}
	meta = appendUint(meta, metaE2E, uint64(it.E2E))
	meta = appendUint(meta, metaInitial, protowire.EncodeBool(it.Initial))
	b = protowire.AppendTag(b, protowire.Number(e.MetaNumber), protowire.BytesType)
	return protowire.AppendBytes(b, meta)
}

func appendUint(b []byte, n protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	b = protowire.AppendTag(b, n, protowire.VarintType)
	return protowire.AppendVarint(b, v)
}

// splitMeta takes a stream's message apart: the arguments, and the meta of a
// stream that another gateway bridged. A native service may send none; what of
// it is malformed or unknown is ignored.
func splitMeta(msg []byte, e *model.Event) bridge.Item {
	it := bridge.Item{Payload: msg}
	for rest := msg; e.MetaNumber != 0 && len(rest) > 0; {
		num, typ, n := protowire.ConsumeTag(rest)
		if n < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(num, typ, rest[n:])
		if size < 0 {
			break
		}
		after := rest[n+size:]
		if num == protowire.Number(e.MetaNumber) && typ == protowire.BytesType {
			meta, _ := protowire.ConsumeBytes(rest[n:])
			readMeta(&it, meta)
			at := len(msg) - len(rest)
			it.Payload = append(msg[:at:at], after...)
			break
		}
		rest = after
	}
	return it
}

func readMeta(it *bridge.Item, meta []byte) {
	eachField(meta, func(num int, v uint64, b []byte) {
		switch num {
		case metaSession:
			it.Session = uint16(v)
		case metaSource:
			it.Source = string(b)
		case metaGap:
			it.Gap = uint32(v)
		case metaReceived:
			it.Received = timeOf(b)
		case metaE2E:
			it.E2E = carismav1.E2EStatus(v)
		case metaInitial:
			it.Initial = protowire.DecodeBool(v)
		}
	})
}

func timeOf(timestamp []byte) time.Time {
	var sec, nsec uint64
	eachField(timestamp, func(num int, v uint64, _ []byte) {
		switch num {
		case timestampSeconds:
			sec = v
		case timestampNanos:
			nsec = v
		}
	})
	return time.Unix(int64(sec), int64(nsec))
}

// eachField calls fn with the varint and length-delimited members of a message,
// up to the first that is malformed.
func eachField(b []byte, fn func(num int, v uint64, data []byte)) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		switch typ {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return
			}
			fn(int(num), v, nil)
			b = b[n:]
		case protowire.BytesType:
			data, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return
			}
			fn(int(num), 0, data)
			b = b[n:]
		default:
			n := protowire.ConsumeFieldValue(num, typ, b)
			if n < 0 {
				return
			}
			b = b[n:]
		}
	}
}
