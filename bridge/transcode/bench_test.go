package transcode_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

// sample is a message of the given number of fields, most of them set.
type sample struct {
	fields  int
	name    string
	message proto.Message
}

func samples(tb testing.TB) []sample {
	tb.Helper()
	all := wide(tb)
	var list []sample
	for _, s := range []sample{{fields: 10, name: "test.wide.v1.Ten"}, {fields: 100, name: "test.wide.v1.Hundred"}} {
		s.message = newMessage(tb, all[s.name])
		fill(rand.New(rand.NewPCG(3, 4)), all[s.name], s.message.ProtoReflect())
		list = append(list, s)
	}
	return list
}

// TestAllocations is the promise that a translation allocates nothing where the
// destination has room.
func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools forget")
	}
	all := wide(t)
	for name, s := range cabin(t) {
		all[name] = s
	}
	for name, s := range all {
		m := newMessage(t, s)
		fill(rand.New(rand.NewPCG(3, 4)), s, m.ProtoReflect())
		codec, wire := compile(t, s), marshal(t, m)
		someip, err := codec.ToSOMEIP(nil, wire)
		require.NoError(t, err)
		buffer := make([]byte, 0, 2*max(len(wire), len(someip))+64)
		require.Zero(t, testing.AllocsPerRun(100, func() { _, err = codec.ToSOMEIP(buffer, wire) }), "%s to SOME/IP", name)
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(100, func() { _, err = codec.ToProto(buffer, someip) }), "%s to protobuf", name)
		require.NoError(t, err)
	}
}

func BenchmarkTranscode(b *testing.B) {
	all := wide(b)
	for _, s := range samples(b) {
		codec, wire := compile(b, all[s.name]), marshal(b, s.message)
		someip, err := codec.ToSOMEIP(nil, wire)
		require.NoError(b, err)
		buffer := make([]byte, 0, 2*max(len(wire), len(someip)))
		b.Run(fmt.Sprintf("%dToProto", s.fields), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = codec.ToProto(buffer, someip)
			}
		})
		b.Run(fmt.Sprintf("%dToSOMEIP", s.fields), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = codec.ToSOMEIP(buffer, wire)
			}
		})
	}
}

// BenchmarkProtobuf is the same with the generated code of protobuf-go, between
// protobuf bytes and a struct.
func BenchmarkProtobuf(b *testing.B) {
	for _, s := range samples(b) {
		wire := marshal(b, s.message)
		buffer := make([]byte, 0, 2*len(wire))
		b.Run(fmt.Sprintf("%dMarshal", s.fields), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = proto.MarshalOptions{}.MarshalAppend(buffer, s.message)
			}
		})
		b.Run(fmt.Sprintf("%dUnmarshal", s.fields), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				proto.Reset(s.message)
				_ = proto.Unmarshal(wire, s.message)
			}
		})
	}
}
