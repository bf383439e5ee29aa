package transcode_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/bridge/transcode"
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

// sampleOf returns the sample of a size, and its codec.
func sampleOf(b *testing.B, fields int) (sample, *transcode.Codec) {
	b.Helper()
	for _, s := range samples(b) {
		if s.fields == fields {
			return s, compile(b, wide(b)[s.name])
		}
	}
	b.Fatal("no such sample")
	return sample{}, nil
}

func benchToProto(b *testing.B, fields int) {
	b.Helper()
	s, codec := sampleOf(b, fields)
	wire := marshal(b, s.message)
	someip, err := codec.ToSOMEIP(nil, wire)
	require.NoError(b, err)
	buffer := make([]byte, 0, 2*len(wire))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = codec.ToProto(buffer, someip)
	}
}

func benchToSOMEIP(b *testing.B, fields int) {
	b.Helper()
	s, codec := sampleOf(b, fields)
	wire := marshal(b, s.message)
	buffer := make([]byte, 0, 4*len(wire))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = codec.ToSOMEIP(buffer, wire)
	}
}

func BenchmarkTranscode10ToProto(b *testing.B)   { benchToProto(b, 10) }
func BenchmarkTranscode10ToSOMEIP(b *testing.B)  { benchToSOMEIP(b, 10) }
func BenchmarkTranscode100ToProto(b *testing.B)  { benchToProto(b, 100) }
func BenchmarkTranscode100ToSOMEIP(b *testing.B) { benchToSOMEIP(b, 100) }

// The same with the generated code of protobuf-go, between protobuf bytes and a
// Go struct.

func benchMarshal(b *testing.B, fields int) {
	b.Helper()
	s, _ := sampleOf(b, fields)
	buffer := make([]byte, 0, 2*len(marshal(b, s.message)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = proto.MarshalOptions{}.MarshalAppend(buffer, s.message)
	}
}

func benchUnmarshal(b *testing.B, fields int) {
	b.Helper()
	s, _ := sampleOf(b, fields)
	wire := marshal(b, s.message)
	b.ReportAllocs()
	for b.Loop() {
		_ = proto.Unmarshal(wire, s.message)
	}
}

func BenchmarkProtobuf10Marshal(b *testing.B)    { benchMarshal(b, 10) }
func BenchmarkProtobuf10Unmarshal(b *testing.B)  { benchUnmarshal(b, 10) }
func BenchmarkProtobuf100Marshal(b *testing.B)   { benchMarshal(b, 100) }
func BenchmarkProtobuf100Unmarshal(b *testing.B) { benchUnmarshal(b, 100) }
