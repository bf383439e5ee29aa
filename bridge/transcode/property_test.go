package transcode_test

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"carisma.dev/gateway/bridge/transcode"
	_ "carisma.dev/gateway/bridge/transcode/internal/widev1"
	"carisma.dev/gateway/codegen/model"
	protoreader "carisma.dev/gateway/codegen/proto"
)

// wide returns the messages of the test interfaces by name, those of the little
// endian one with the suffix "/little".
func wide(tb testing.TB) map[string]*model.Struct {
	tb.Helper()
	set, err := protoreader.Load("internal/widev1")
	require.NoError(tb, err)
	messages := map[string]*model.Struct{}
	for _, i := range set.Interfaces {
		suffix := ""
		if i.Name == "Little" {
			suffix = "/little"
		}
		for _, m := range i.AllMethods() {
			messages[m.In.Name+suffix], messages[m.Out.Name+suffix] = m.In, m.Out
		}
	}
	return messages
}

// newMessage returns an empty message of the generated type.
func newMessage(tb testing.TB, s *model.Struct) proto.Message {
	tb.Helper()
	typ, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(s.Name))
	require.NoError(tb, err)
	return typ.New().Interface()
}

// TestRandomMessages takes random messages from protobuf to SOME/IP and back:
// what comes out is byte for byte what protobuf-go marshals, and any other
// encoding of the message gives the same SOME/IP bytes.
func TestRandomMessages(t *testing.T) {
	all := cabin(t)
	for name, s := range wide(t) {
		all[name] = s
	}
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			codec := compile(t, s)
			rnd := rand.New(rand.NewPCG(1, 2))
			for range 300 {
				m := newMessage(t, s)
				fill(rnd, s, m.ProtoReflect())
				checkMessage(t, rnd, codec, s, m)
			}
		})
	}
}

func checkMessage(t *testing.T, rnd *rand.Rand, codec *transcode.Codec, s *model.Struct, m proto.Message) {
	t.Helper()
	wire := marshal(t, m)
	someip, err := codec.ToSOMEIP(nil, wire)
	require.NoError(t, err)
	back, err := codec.ToProto(nil, someip)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(wire), hex.EncodeToString(back))

	scrambled := scramble(t, rnd, s, wire)
	same := newMessage(t, s)
	require.NoError(t, proto.Unmarshal(scrambled, same))
	same.ProtoReflect().SetUnknown(nil)
	again, err := codec.ToSOMEIP(nil, scrambled)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(someip), hex.EncodeToString(again), "of %x", scrambled)

	// Payloads cut short are errors or, in a tail that may be absent, fewer bytes.
	if len(someip) > 0 {
		cut := someip[:rnd.IntN(len(someip))]
		if _, err := codec.ToProto(nil, cut); err != nil {
			require.ErrorIs(t, err, transcode.ErrMalformed)
		}
	}
}
