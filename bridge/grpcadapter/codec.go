package grpcadapter

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	// Registers the codec of the services that the gateway itself implements.
	_ "google.golang.org/grpc/encoding/proto"
)

// codec passes messages through as bytes. Messages of the gateway's own
// services, which are generated types, go to the protobuf codec.
type codec struct {
	encoding.CodecV2
}

// rawCodec is the codec of all connections of the adapter. Its name is that of
// protobuf: the bytes are protobuf messages.
var rawCodec = codec{encoding.GetCodecV2("proto")}

// incoming is a received message. It holds the transport's buffer until free.
type incoming struct {
	buf mem.Buffer
}

func (m *incoming) bytes() []byte { return m.buf.ReadOnlyData() }
func (m *incoming) free()         { m.buf.Free() }

// outgoing is a message to send, in pieces that nobody changes any more.
type outgoing mem.BufferSlice

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*outgoing); ok {
		return mem.BufferSlice(*m), nil
	}
	return c.CodecV2.Marshal(v)
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*incoming); ok {
		m.buf = data.MaterializeToBuffer(mem.DefaultBufferPool())
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

func message(pieces ...[]byte) *outgoing {
	m := make(outgoing, 0, len(pieces))
	for _, p := range pieces {
		if len(p) > 0 {
			m = append(m, mem.SliceBuffer(p))
		}
	}
	return &m
}
