// Package jsoncodec translates between JSON, as people write it, and the SOME/IP
// payloads of an interface. It is for tools: it works through descriptors and
// reflection, which the data path does not.
package jsoncodec

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"carisma.dev/gateway/bridge/transcode"
	"carisma.dev/gateway/codegen/model"
)

// Codec translates the messages of the interfaces in a descriptor set. It is
// safe for concurrent use.
type Codec struct{ files *protoregistry.Files }

// New returns a codec for a serialised FileDescriptorSet.
func New(descriptorSet []byte) (*Codec, error) {
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(descriptorSet, &set); err != nil {
		return nil, fmt.Errorf("descriptor set: %w", err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return nil, fmt.Errorf("descriptor set: %w", err)
	}
	return &Codec{files}, nil
}

// Payload returns the SOME/IP payload of a message in JSON. Empty text stands
// for {}.
func (c *Codec) Payload(s *model.Struct, text []byte) ([]byte, error) {
	m, err := c.message(s)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	if err := protojson.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	wire, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}
	codec, err := transcode.Compile(s)
	if err != nil {
		return nil, err
	}
	return codec.ToSOMEIP(nil, wire)
}

// JSON returns a SOME/IP payload as JSON on one line, with every member, in the
// order of the interface.
func (c *Codec) JSON(s *model.Struct, payload []byte) ([]byte, error) {
	m, err := c.message(s)
	if err != nil {
		return nil, err
	}
	codec, err := transcode.Compile(s)
	if err != nil {
		return nil, err
	}
	wire, err := codec.ToProto(nil, payload)
	if err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(wire, m); err != nil {
		return nil, err
	}
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil { // protojson varies its white space
		return nil, err
	}
	return line.Bytes(), nil
}

func (c *Codec) message(s *model.Struct) (*dynamicpb.Message, error) {
	d, err := c.files.FindDescriptorByName(protoreflect.FullName(s.Name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	md, ok := d.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is no message", s.Name)
	}
	return dynamicpb.NewMessage(md), nil
}
