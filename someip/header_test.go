package someip_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
)

// golden is the request of the digest, section 1.1.
var golden = unhex("12 34 04 21 00 00 00 0b 13 43 00 01 01 01 00 00 01 02 03")

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// HDR-4, HDR-7.
func TestGoldenRequest(t *testing.T) {
	want := someip.NewRequest(0x1234, 0x0421, 1, 0x1343, 1, []byte{1, 2, 3})
	require.Equal(t, golden, want.Append(nil))
	require.Equal(t, len(golden), want.Size())

	m, rest, err := someip.ParseMessage(golden)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, want, m)
	require.NoError(t, m.Validate())
	require.True(t, m.MayAnswer())
}

// HDR-2, ORD-1.
func TestTruncationAtEveryOffset(t *testing.T) {
	for i := range golden {
		_, rest, err := someip.ParseMessage(golden[:i])
		require.ErrorIs(t, err, someip.ErrShort, "%d bytes", i)
		require.Nil(t, rest)
		var parse *someip.ParseError
		require.ErrorAs(t, err, &parse)
		require.Equal(t, i, parse.Offset)
	}
}

// HDR-1, case 2: a Length below 8 is refused before anything is computed from it.
func TestCase2LengthBelowHeader(t *testing.T) {
	for length := range byte(8) {
		b := bytes.Clone(golden)
		b[7] = length
		_, rest, err := someip.ParseMessage(b)
		require.ErrorIs(t, err, someip.ErrLength, "length %d", length)
		require.Nil(t, rest)
	}
}

// HDR-1: Length+8 does not wrap.
// HDR-2.
func TestLengthCorners(t *testing.T) {
	for _, length := range []uint32{12, 0xFFFF_FFF0, 0xFFFF_FFF7, 0xFFFF_FFF8, math.MaxUint32} {
		b := bytes.Clone(golden)
		b[4], b[5], b[6], b[7] = byte(length>>24), byte(length>>16), byte(length>>8), byte(length)
		h, err := someip.ParseHeader(b)
		require.NoError(t, err)
		require.Equal(t, uint64(length)+8, h.WireSize())
		_, rest, err := someip.ParseMessage(b)
		require.ErrorIs(t, err, someip.ErrShort, "length %#x", length)
		require.Nil(t, rest)
	}
	b := bytes.Clone(golden[:16])
	b[7] = 8
	m, rest, err := someip.ParseMessage(b)
	require.NoError(t, err)
	require.Empty(t, m.Payload)
	require.Empty(t, rest)
}

// 1.6: protocol version comes before message type before return code.
// ORD-2, CODE-1.
func TestValidateOrder(t *testing.T) {
	h := someip.Header{ProtocolVersion: 2, Type: 0x40, Code: 0x5F}
	for _, want := range []struct {
		reason error
		offset int
		mend   func()
	}{
		{someip.ErrProtocolVersion, 12, func() { h.ProtocolVersion = 1 }},
		{someip.ErrMessageType, 14, func() { h.Type = someip.Response }},
		{someip.ErrReturnCode, 15, func() { h.Code = 0x5E }},
	} {
		err := h.Validate()
		require.ErrorIs(t, err, want.reason)
		var parse *someip.ParseError
		require.True(t, errors.As(err, &parse))
		require.Equal(t, want.offset, parse.Offset)
		require.Contains(t, err.Error(), want.reason.Error())
		want.mend()
	}
	require.NoError(t, h.Validate())
}

// Case 4: application codes pass both ways, what is above does not.
// CODE-1, CODE-2.
func TestCase4ApplicationReturnCodes(t *testing.T) {
	request, _, err := someip.ParseMessage(golden)
	require.NoError(t, err)
	for code := range 0x100 {
		rc := someip.ReturnCode(code)
		for _, exception := range []bool{false, true} {
			reply := request.Failure(rc, exception, nil)
			got, _, err := someip.ParseMessage(reply.Append(nil))
			require.NoError(t, err)
			require.Equal(t, rc, got.Code)
			if code <= 0x5E {
				require.NoError(t, got.Validate())
			} else {
				require.ErrorIs(t, got.Validate(), someip.ErrReturnCode)
			}
		}
		require.Equal(t, code >= 0x20 && code <= 0x5E, rc.Application())
	}
}

// Case 5, RC-1: a request that comes with a return code is never answered by an
// error.
func TestCase5ReturnCodeInRequest(t *testing.T) {
	b := bytes.Clone(golden)
	b[15] = 0xC0
	m, rest, err := someip.ParseMessage(append(b, golden...))
	require.NoError(t, err)
	require.ErrorIs(t, m.Validate(), someip.ErrReturnCode)
	require.False(t, m.MayAnswer())
	_, _, err = someip.ParseMessage(rest) // parsing goes on behind it
	require.NoError(t, err)
}

// Case 10: the ACK types are unknown types.
// TYPE-1.
func TestCase10AckTypes(t *testing.T) {
	for _, typ := range []someip.MessageType{0x40, 0x41, 0x42, 0xC0, 0xC1, 0x03, 0x82, 0xFF} {
		require.False(t, typ.Known(), "%#x", uint8(typ))
		h := someip.Header{ProtocolVersion: 1, Type: typ}
		require.ErrorIs(t, h.Validate(), someip.ErrMessageType)
		require.False(t, h.MayAnswer())
	}
	for _, typ := range []someip.MessageType{0x00, 0x01, 0x02, 0x80, 0x81, 0x20, 0x21, 0x22, 0xA0, 0xA1} {
		require.True(t, typ.Known(), "%#x", uint8(typ))
	}
}

func TestHeaderDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 64)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		m, _, err := someip.ParseMessage(golden)
		if err != nil || m.Validate() != nil {
			t.Fatal("golden message refused")
		}
		buf = m.Response(m.Payload).Append(buf[:0])
	}))
}

func TestNames(t *testing.T) {
	for want, got := range map[string]interface{ String() string }{
		"REQUEST":             someip.Request,
		"REQUEST_NO_RETURN":   someip.RequestNoReturn,
		"NOTIFICATION":        someip.Notification,
		"RESPONSE":            someip.Response,
		"TP_ERROR":            someip.Error | someip.FlagTP,
		"0x40":                someip.MessageType(0x40),
		"E_OK":                someip.OK,
		"E_MALFORMED_MESSAGE": someip.MalformedMessage,
		"E_E2E_NO_NEW_DATA":   someip.E2ENoNewData,
		"0x20":                someip.ApplicationFirst,
		"1234.5678 v1":        someip.InstanceKey{Service: 0x1234, Instance: 0x5678, Major: 1},
		"1234.* v*":           someip.InstanceKey{Service: 0x1234, Instance: someip.AnyInstance, Major: someip.AnyMajor},
	} {
		require.Equal(t, want, got.String())
	}
}

// ID-1, ID-2.
func TestInstanceKey(t *testing.T) {
	k := someip.InstanceKey{Service: 0x1234, Instance: 1, Major: 2}
	require.True(t, k.Valid())
	require.True(t, k.Matches(k))
	require.True(t, k.Matches(someip.InstanceKey{Service: 0x1234, Instance: someip.AnyInstance, Major: someip.AnyMajor}))
	require.False(t, k.Matches(someip.InstanceKey{Service: 0x1234, Instance: 1, Major: 1}))
	require.False(t, k.Matches(someip.InstanceKey{Service: 0x1234, Instance: 2, Major: 2}))
	require.False(t, k.Matches(someip.InstanceKey{Service: 0x1235, Instance: 1, Major: 2}))
	for _, bad := range []someip.InstanceKey{
		{}, {Service: 0xFFFF, Instance: 1}, {Service: 1}, {Service: 1, Instance: 0xFFFF}, {Service: 1, Instance: 1, Major: 0xFF},
	} {
		require.False(t, bad.Valid(), "%v", bad)
	}
	require.True(t, someip.IsEvent(0x8001))
	require.False(t, someip.IsEvent(0x7FFE))
}

// SES-1: 0 is skipped when the counter wraps.
func TestNextSession(t *testing.T) {
	require.EqualValues(t, 1, someip.NextSession(0))
	require.EqualValues(t, 0xFFFF, someip.NextSession(0xFFFE))
	require.EqualValues(t, 1, someip.NextSession(0xFFFF))
}
