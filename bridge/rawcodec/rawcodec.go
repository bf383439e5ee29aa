// Package rawcodec lets gRPC carry messages that stay bytes, beside ordinary
// protobuf messages.
package rawcodec

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Codec carries a *[]byte as it is, and leaves every other type to the protobuf
// codec, under whose name it goes. A sent slice must not be changed until the
// call returns from SendMsg and, on a client, until the transport has written
// it: give each message a slice of its own. A received slice belongs to the
// receiver.
//
// Use it by grpc.ForceServerCodecV2 and grpc.ForceCodecV2. It holds nothing and
// may be shared.
type Codec struct{}

var (
	_        encoding.CodecV2 = Codec{}
	protobuf                  = encoding.GetCodecV2(proto.Name)
)

// Name returns the content subtype of protobuf.
func (Codec) Name() string { return proto.Name }

// Marshal returns the bytes themselves, not a copy.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.(*[]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
	}
	return protobuf.Marshal(v)
}

// Unmarshal copies the message into a slice of its own.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	if b, ok := v.(*[]byte); ok {
		*b = data.Materialize()
		return nil
	}
	return protobuf.Unmarshal(data, v)
}
