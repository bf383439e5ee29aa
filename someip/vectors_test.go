package someip_test

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/internal/corpus"
)

// headerVector is a message as another implementation reads it.
type headerVector struct {
	Name, Bytes, Payload, Rest string
	Fields                     map[string]any // numbers, or text with 0x
}

func (v headerVector) field(t *testing.T, name string, bits int) uint64 {
	t.Helper()
	switch f := v.Fields[name].(type) {
	case float64:
		return uint64(f)
	case string:
		n, err := strconv.ParseUint(f, 0, bits)
		require.NoError(t, err)
		return n
	default:
		t.Fatalf("%s: no field %s", v.Name, name)
		return 0
	}
}

// The headers of the vectors decode to their fields and encode to the byte; those
// that the other implementation refuses are refused. HDR-1, HDR-2, HDR-7, TYPE-1,
// UDP-1.
//
// Where we differ: it takes the ACK types (0x40), which we parse but do not accept.
func TestVectors(t *testing.T) {
	var file struct {
		Valid   []headerVector `json:"header_valid"`
		Invalid []headerVector `json:"header_invalid"`
		Stream  struct {
			Chunks   []string
			Messages []headerVector
		} `json:"tcp_stream"`
	}
	require.NoError(t, json.Unmarshal(corpus.Read(t, "vectors/pysomeip/pysomeip-header-sd.json"), &file))
	require.NotEmpty(t, file.Valid)
	require.NotEmpty(t, file.Invalid)

	check := func(v headerVector, b []byte) (rest []byte) {
		m, rest, err := someip.ParseMessage(b)
		require.NoError(t, err, v.Name)
		require.Equal(t, v.Payload, hex.EncodeToString(m.Payload), v.Name)
		require.Equal(t, someip.Header{
			Service: uint16(v.field(t, "service_id", 16)), Method: uint16(v.field(t, "method_id", 16)), Length: uint32(8 + len(v.Payload)/2),
			Client: uint16(v.field(t, "client_id", 16)), Session: uint16(v.field(t, "session_id", 16)),
			ProtocolVersion: uint8(v.field(t, "protocol_version", 8)), InterfaceVersion: uint8(v.field(t, "interface_version", 8)),
			Type: someip.MessageType(v.field(t, "message_type", 8)), Code: someip.ReturnCode(v.field(t, "return_code", 8)),
		}, m.Header, v.Name)
		require.Equal(t, b[:len(b)-len(rest)], m.Append(nil), v.Name)
		require.ErrorIs(t, m.Validate(), someip.ErrMessageType)
		return rest
	}
	for _, v := range file.Valid {
		rest := check(v, unhex(v.Bytes))
		require.Equal(t, v.Rest, hex.EncodeToString(rest), v.Name)
	}
	for _, v := range file.Invalid {
		m, _, err := someip.ParseMessage(unhex(v.Bytes))
		if err == nil {
			err = m.Validate()
		}
		require.Error(t, err, v.Name)
	}

	// The stream in pieces: nothing is a message before its last byte is there.
	var stream []byte
	messages := file.Stream.Messages
	for _, chunk := range file.Stream.Chunks {
		stream = append(stream, unhex(chunk)...)
		if _, _, err := someip.ParseMessage(stream); err != nil {
			require.ErrorIs(t, err, someip.ErrShort)
			continue
		}
		stream, messages = check(messages[0], stream), messages[1:]
	}
	require.Empty(t, stream)
	require.Empty(t, messages)
}
