package rawcodec_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"carisma.dev/gateway/bridge/rawcodec"
)

func TestBytesPassUntouched(t *testing.T) {
	t.Parallel()
	in := []byte{1, 2, 3}
	data, err := rawcodec.Codec{}.Marshal(&in)
	require.NoError(t, err)
	var out []byte
	require.NoError(t, rawcodec.Codec{}.Unmarshal(data, &out))
	require.Equal(t, in, out)
	out[0] = 9
	require.Equal(t, byte(1), in[0], "the receiver owns its copy")
}

func TestMessagesAreProtobuf(t *testing.T) {
	t.Parallel()
	data, err := rawcodec.Codec{}.Marshal(wrapperspb.String("x"))
	require.NoError(t, err)
	var raw []byte
	require.NoError(t, rawcodec.Codec{}.Unmarshal(data, &raw))
	require.Equal(t, []byte{0x0a, 1, 'x'}, raw)
	var msg wrapperspb.StringValue
	require.NoError(t, rawcodec.Codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, &msg))
	require.Equal(t, "x", msg.GetValue())
}
