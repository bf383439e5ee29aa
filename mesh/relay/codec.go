package relay

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	// Registers the codec whose name ours goes under.
	"google.golang.org/grpc/encoding/proto"
)

// rawCodec carries messages as the bytes they are. A sent slice must not change
// any more; a received one belongs to the receiver.
type rawCodec struct{ encoding.CodecV2 }

var raw = rawCodec{encoding.GetCodecV2(proto.Name)}

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.(*[]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (c rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if b, ok := v.(*[]byte); ok {
		*b = data.Materialize()
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
