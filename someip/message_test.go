package someip_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
)

// Case 1: the good message is delivered, what follows it is an error without a
// header to answer.
func TestCase1JunkBehindMessage(t *testing.T) {
	good := someip.NewRequest(0x1234, 1, 1, 0x1343, 1, make([]byte, 8))
	datagram := append(good.Append(nil), bytes.Repeat([]byte{0xA5}, 32)...)

	m, rest, err := someip.ParseMessage(datagram)
	require.NoError(t, err)
	require.Equal(t, good, m)
	require.Len(t, rest, 32)
	_, rest, err = someip.ParseMessage(rest)
	require.ErrorIs(t, err, someip.ErrShort)
	require.Nil(t, rest)
}

// UDP-7: a tail shorter than a header is no message.
func TestShortTail(t *testing.T) {
	_, rest, err := someip.ParseMessage(append(bytes.Clone(golden), make([]byte, 15)...))
	require.NoError(t, err)
	_, _, err = someip.ParseMessage(rest)
	require.ErrorIs(t, err, someip.ErrShort)
}

// Case 8: the interface version is the major of the service in every message.
// HDR-4.
func TestCase8InterfaceVersion(t *testing.T) {
	const major = 2
	request := someip.NewRequest(0x1234, 1, major, 0x1343, 7, nil)
	for _, m := range []someip.Message{
		request,
		someip.NewRequestNoReturn(0x1234, 2, major, 0x1343, 8, nil),
		someip.NewNotification(0x1234, 0x8001, major, 9, nil),
		request.Response(nil),
		request.Failure(someip.NotOK, false, nil),
		request.Failure(someip.WrongMessageType, true, nil),
	} {
		require.EqualValues(t, major, m.Append(nil)[13], "%v", m.Type)
		require.EqualValues(t, someip.ProtocolVersion, m.Append(nil)[12])
	}
}

// Case 11: what exceeds a datagram is refused by its sender.
// UDP-2, UDP-3.
func TestCase11PayloadAbove1400(t *testing.T) {
	require.NoError(t, someip.NewNotification(1, 0x8001, 1, 1, make([]byte, someip.MaxUDPPayload)).CheckUDP())
	require.ErrorIs(t, someip.NewNotification(1, 0x8001, 1, 1, make([]byte, someip.MaxUDPPayload+1)).CheckUDP(), someip.ErrTooLong)
	require.Equal(t, 1400, someip.MaxUDPPayload)
	require.Equal(t, 1416, someip.MaxUDPDatagram)
}

// Case 13, UDP-1: several messages in a datagram, unaligned.
func TestCase13SeveralMessages(t *testing.T) {
	for n := 1; n <= 3; n++ {
		var datagram []byte
		var want []someip.Message
		for i := range n {
			m := someip.NewRequest(0x1234, 1, 1, 0x1343, uint16(i+1), bytes.Repeat([]byte{byte(i)}, 3+i))
			want = append(want, m)
			datagram = m.Append(datagram)
		}
		var got []someip.Message
		for rest := datagram; len(rest) > 0; {
			m, tail, err := someip.ParseMessage(rest)
			require.NoError(t, err)
			got, rest = append(got, m), tail
		}
		require.Equal(t, want, got)
	}
}

// The payload is a view that cannot grow into the next message.
func TestPayloadIsClipped(t *testing.T) {
	datagram := append(bytes.Clone(golden), golden...)
	m, _, err := someip.ParseMessage(datagram)
	require.NoError(t, err)
	_ = append(m.Payload, 0xEE)
	require.Equal(t, golden, datagram[len(golden):])
}

// SES-3, RC-3 to RC-5, HDR-3.
// RC-4.
func TestReplies(t *testing.T) {
	request := someip.NewRequest(0x1234, 0x0421, 3, 0x1343, 7, nil)
	request.ProtocolVersion = 9
	for _, tc := range []struct {
		reply   someip.Message
		typ     someip.MessageType
		code    someip.ReturnCode
		payload []byte
	}{
		{request.Response([]byte{1}), someip.Response, someip.OK, []byte{1}},
		{request.Failure(someip.UnknownMethod, true, nil), someip.Error, someip.UnknownMethod, nil},
		{request.Failure(someip.UnknownMethod, false, nil), someip.Response, someip.UnknownMethod, nil},
		{request.Failure(0x21, true, []byte{5}), someip.Error, 0x21, []byte{5}},
	} {
		require.Equal(t, someip.Header{
			Service: 0x1234, Method: 0x0421, Length: uint32(8 + len(tc.payload)), Client: 0x1343, Session: 7,
			ProtocolVersion: 1, InterfaceVersion: 3, Type: tc.typ, Code: tc.code,
		}, tc.reply.Header)
		require.Equal(t, tc.payload, tc.reply.Payload)
		require.True(t, tc.reply.Type.IsReply())
	}
}

// RC-2: an ERROR that says E_OK is a failure.
func TestResult(t *testing.T) {
	request := someip.NewRequest(1, 1, 1, 1, 1, nil)
	require.Equal(t, someip.NotOK, request.Failure(someip.OK, true, nil).Result())
	require.Equal(t, someip.OK, request.Response(nil).Result())
	require.Equal(t, someip.MalformedMessage, request.Failure(someip.MalformedMessage, false, nil).Result())
}
