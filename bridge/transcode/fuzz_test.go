package transcode_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/bridge/transcode"
	"carisma.dev/gateway/codegen/model"
)

// subject is a message that the fuzz targets choose by number.
type subject struct {
	s     *model.Struct
	codec *transcode.Codec
	// generated messages have a Go type.
	generated bool
}

// subjects returns the messages with generated types, in a fixed order.
func subjects(tb testing.TB) []subject {
	tb.Helper()
	all := wide(tb)
	for name, s := range cabin(tb) {
		all[name] = s
	}
	all["choice"] = choice
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	var list []subject
	for _, name := range names {
		list = append(list, subject{all[name], compile(tb, all[name]), true})
	}
	return list
}

// FuzzToProto translates hostile payloads: never a panic, what comes out is
// protobuf that protobuf-go reads and would write the same, unless a map is in it.
func FuzzToProto(f *testing.F) {
	list := subjects(f)
	rnd := rand.New(rand.NewPCG(7, 8))
	list = append(list, subject{s: taggedMessage()}, subject{s: bitsMessage()}, subject{s: alignedMessage()})
	for i, s := range list {
		if !s.generated {
			list[i].codec = compile(f, s.s)
			f.Add(uint8(i), []byte{0, 1, 5, 0, 7})
			continue
		}
		m := newMessage(f, s.s)
		fill(rnd, s.s, m.ProtoReflect())
		b, err := s.codec.ToSOMEIP(nil, marshal(f, m))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b)
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		s := list[int(which)%len(list)]
		wire, err := s.codec.ToProto(nil, b)
		if err != nil {
			return
		}
		// Back on SOME/IP, unless it has an enum value that no literal has or text
		// that grows by mark and terminator, it means the same.
		if b, err = s.codec.ToSOMEIP(nil, wire); err == nil {
			if again, err := s.codec.ToProto(nil, b); err != nil || !bytes.Equal(wire, again) {
				t.Fatalf("%x came back as %x, %v", wire, again, err)
			}
		}
		if !s.generated {
			return
		}
		m := newMessage(t, s.s)
		if err := proto.Unmarshal(wire, m); err != nil {
			t.Fatalf("%x: %v", wire, err)
		}
		if again := marshal(t, m); !bytes.Equal(wire, again) && !hasMap(s.s) {
			t.Fatalf("%x is %x in protobuf-go", wire, again)
		}
	})
}

func hasMap(s *model.Struct) bool {
	return slices.ContainsFunc(s.Members, func(m *model.Member) bool { return m.Type.Kind == model.MapKind })
}

// FuzzToSOMEIP translates hostile protobuf: never a panic, what protobuf-go does
// not read is an error here too, and its own encoding of what it read gives the
// same payload.
func FuzzToSOMEIP(f *testing.F) {
	list := subjects(f)
	rnd := rand.New(rand.NewPCG(9, 10))
	for i, s := range list {
		m := newMessage(f, s.s)
		fill(rnd, s.s, m.ProtoReflect())
		f.Add(uint8(i), marshal(f, m))
	}
	f.Fuzz(func(t *testing.T, which uint8, wire []byte) {
		s := list[int(which)%len(list)]
		b, err := s.codec.ToSOMEIP(nil, wire)
		m := newMessage(t, s.s)
		if unmarshalErr := proto.Unmarshal(wire, m); unmarshalErr != nil || err != nil {
			return
		}
		same, err := s.codec.ToSOMEIP(nil, marshal(t, m))
		if err != nil || !bytes.Equal(b, same) && !hasMap(s.s) {
			t.Fatalf("%x, but %x from protobuf-go's encoding, %v", b, same, err)
		}
		back, err := s.codec.ToProto(nil, b)
		if err != nil {
			t.Fatalf("%x from %x: %v", b, wire, err)
		}
		if again, err := s.codec.ToSOMEIP(nil, back); err != nil || !bytes.Equal(b, again) {
			t.Fatalf("%x came back as %x, %v", b, again, err)
		}
	})
}
