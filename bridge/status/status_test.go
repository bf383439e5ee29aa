package status

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/someip"
)

var climate = &model.Interface{SOMEIP: &model.SOMEIPService{
	Errors: []model.SOMEIPError{{Name: "BLOWER_BLOCKED", Code: 0x21}},
}}

// TestFromSOMEIP is the first table of bridging.md 4.3, row by row.
func TestFromSOMEIP(t *testing.T) {
	for _, row := range []struct {
		first, last someip.ReturnCode
		code        codes.Code
		dbus        string
	}{
		{0x01, 0x01, codes.Unknown, "org.freedesktop.DBus.Error.Failed"},
		{0x02, 0x02, codes.Unavailable, "org.freedesktop.DBus.Error.ServiceUnknown"},
		{0x03, 0x03, codes.Unimplemented, "org.freedesktop.DBus.Error.UnknownMethod"},
		{0x04, 0x04, codes.Unavailable, "dev.carisma.Error.NotReady"},
		{0x05, 0x05, codes.Unavailable, "dev.carisma.Error.NotReachable"},
		{0x06, 0x06, codes.DeadlineExceeded, "org.freedesktop.DBus.Error.Timeout"},
		{0x07, 0x08, codes.FailedPrecondition, "org.freedesktop.DBus.Error.NotSupported"},
		{0x09, 0x09, codes.InvalidArgument, "org.freedesktop.DBus.Error.InvalidArgs"},
		{0x0A, 0x0A, codes.Internal, "org.freedesktop.DBus.Error.Failed"},
		{0x0B, 0x0F, codes.DataLoss, "dev.carisma.Error.E2E"},
		{0x10, 0x1F, codes.Unknown, "org.freedesktop.DBus.Error.Failed"},
		{0x20, 0x5E, codes.Unknown, ""},
		{0x5F, 0xFF, codes.Unknown, "org.freedesktop.DBus.Error.Failed"},
	} {
		for code := int(row.first); code <= int(row.last); code++ {
			e := FromSOMEIP(someip.ReturnCode(code), true, nil, nil)
			require.Equal(t, row.code, e.Code, "0x%02x", code)
			want := row.dbus
			if want == "" {
				want = fmt.Sprintf("dev.carisma.Error.Application.x%02x", code)
			}
			require.Equal(t, want, e.DBus(), "0x%02x", code)
		}
	}
}

// TestFromGRPC is the second table of bridging.md 4.3, row by row, and total.
func TestFromGRPC(t *testing.T) {
	want := map[codes.Code]struct {
		code     someip.ReturnCode
		standard someip.ReturnCode
		dbus     string
	}{
		codes.InvalidArgument:    {0x09, 0x09, "org.freedesktop.DBus.Error.InvalidArgs"},
		codes.OutOfRange:         {0x09, 0x09, "org.freedesktop.DBus.Error.InvalidArgs"},
		codes.Unimplemented:      {0x03, 0x03, "org.freedesktop.DBus.Error.UnknownMethod"},
		codes.Unavailable:        {0x05, 0x01, "dev.carisma.Error.NotReachable"},
		codes.DeadlineExceeded:   {0x06, 0x01, "org.freedesktop.DBus.Error.Timeout"},
		codes.ResourceExhausted:  {0x04, 0x01, "org.freedesktop.DBus.Error.LimitsExceeded"},
		codes.PermissionDenied:   {0x01, 0x01, "org.freedesktop.DBus.Error.AccessDenied"},
		codes.Unauthenticated:    {0x01, 0x01, "org.freedesktop.DBus.Error.AuthFailed"},
		codes.NotFound:           {0x01, 0x01, "dev.carisma.Error.NotFound"},
		codes.AlreadyExists:      {0x01, 0x01, "dev.carisma.Error.AlreadyExists"},
		codes.Canceled:           {0x01, 0x01, "org.freedesktop.DBus.Error.Failed"},
		codes.Unknown:            {0x01, 0x01, "org.freedesktop.DBus.Error.Failed"},
		codes.Internal:           {0x01, 0x01, "org.freedesktop.DBus.Error.Failed"},
		codes.Aborted:            {0x01, 0x01, "org.freedesktop.DBus.Error.Failed"},
		codes.FailedPrecondition: {0x01, 0x01, "org.freedesktop.DBus.Error.Failed"},
		codes.DataLoss:           {0x01, 0x01, "org.freedesktop.DBus.Error.Failed"},
		codes.Code(99):           {0x01, 0x01, "org.freedesktop.DBus.Error.Failed"},
	}
	require.Len(t, want, 17, "every code but OK, and one that does not exist yet")
	for code, row := range want {
		e := FromGRPC(grpcstatus.Error(code, "why"))
		require.Equal(t, code, e.Code)
		require.Equal(t, "why", e.Message)
		require.True(t, e.Exception, "errors that are not from SOME/IP are sent as ERROR")
		got, payload := e.SOMEIP(false)
		require.Equal(t, row.code, got, code)
		require.Empty(t, payload)
		got, _ = e.SOMEIP(true)
		require.Equal(t, row.standard, got, code)
		require.Equal(t, row.dbus, e.DBus(), code)
	}
}

func TestFromDBus(t *testing.T) {
	rows := map[string]fromDBusName{"org.bluez.Error.Failed": {codes.Unknown, someip.NotOK}, "": {codes.Unknown, someip.NotOK}}
	for name, row := range dbusNames {
		rows[dbusStandard+name] = row
	}
	for name, row := range rows {
		e := FromDBus(name, "no such thing")
		require.Equal(t, row.code, e.Code, name)
		code, _ := e.SOMEIP(false)
		if name != "" {
			require.Equal(t, row.returnCode, code, name)
			back := FromGRPC(e.GRPC().Err())
			require.Equal(t, name, back.DBus(), "the original name comes back")
			code, _ = back.SOMEIP(false)
			require.Equal(t, row.returnCode, code, name)
		}
	}
}

// TestRoundTrip sends every code in both forms, with and without payload, over
// gRPC and back: nothing is lost.
func TestRoundTrip(t *testing.T) {
	for code := someip.NotOK; code.Valid(); code++ {
		for _, exception := range []bool{false, true} {
			for _, payload := range [][]byte{nil, {0x00}, bytes.Repeat([]byte{0xA5}, 1400)} {
				e := FromSOMEIP(code, exception, payload, climate)
				back := FromGRPC(e.GRPC().Err())
				gotCode, gotPayload := back.SOMEIP(false)
				require.Equal(t, code, gotCode)
				require.True(t, bytes.Equal(payload, gotPayload))
				require.Equal(t, exception, back.Exception)
				require.Equal(t, e.Application, back.Application)
				require.Equal(t, e.Message, back.Message)
				require.Equal(t, e.DBus(), back.DBus())
			}
		}
	}
}

func TestApplicationError(t *testing.T) {
	payload := []byte{1, 2}
	e := FromSOMEIP(0x21, true, payload, climate)
	payload[0] = 9
	require.Equal(t, []byte{1, 2}, e.Payload, "the payload is a copy")
	require.Equal(t, "BLOWER_BLOCKED", e.Application)
	require.Equal(t, "BLOWER_BLOCKED (0x21)", e.Message)
	require.Equal(t, "application error 0x22", FromSOMEIP(0x22, true, nil, climate).Message)

	details := e.GRPC().Details()
	require.Len(t, details, 1)
	d, ok := details[0].(*carismav1.ErrorDetail)
	require.True(t, ok)
	require.Equal(t, uint32(0x21), d.GetReturnCode())
	require.Equal(t, "BLOWER_BLOCKED", d.GetApplicationError())
}

func TestExceptionWithCodeOK(t *testing.T) { // RC-2
	code, _ := FromSOMEIP(someip.OK, true, nil, nil).SOMEIP(false)
	require.Equal(t, someip.NotOK, code)
}

func TestReservedCodesAreNotSent(t *testing.T) {
	code, _ := FromSOMEIP(0x5F, true, nil, nil).SOMEIP(false)
	require.Equal(t, someip.NotOK, code)

	for _, code := range []uint32{0x5F, 0x100, 0x105, 1 << 31} {
		st, err := grpcstatus.New(codes.Unavailable, "").WithDetails(&carismav1.ErrorDetail{ReturnCode: code, Payload: []byte{1}})
		require.NoError(t, err)
		got, payload := FromGRPC(st.Err()).SOMEIP(false)
		require.Equal(t, someip.NotReachable, got, "a code that cannot be is left to the table")
		require.Empty(t, payload)
	}
}

func TestStandardCodesOnly(t *testing.T) {
	for code := someip.NotOK; code.Valid(); code++ {
		got, _ := FromSOMEIP(code, true, nil, nil).SOMEIP(true)
		if code >= someip.NotReady && code <= someip.Timeout {
			require.Equal(t, someip.NotOK, got)
		} else {
			require.Equal(t, code, got)
		}
	}
}

func TestConstructors(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	for name, e := range map[string]*Error{
		"Unavailable: service unavailable: StopOffer, since 2026-03-01T12:30:00Z": Unavailable("StopOffer", since),
		"Unavailable: service unavailable: never offered":                         Unavailable("never offered", time.Time{}),
		"InvalidArgument: vents[2].opening: 300, 0 to 255 allowed":                InvalidArgument("vents[2].opening", "300, 0 to 255 allowed"),
		"InvalidArgument: truncated":                                              InvalidArgument("", "truncated"),
		"DeadlineExceeded: no answer in time":                                     DeadlineExceeded(),
		"DataLoss: undecodable: zone: truncated":                                  DataLoss("zone", "truncated"),
		"NotFound: no instance third":                                             New(codes.NotFound, "no instance %s", "third"),
	} {
		require.EqualError(t, e, name)
		back := FromGRPC(e.GRPC().Err())
		require.Equal(t, e, back, "what the gateway says survives gRPC whole")
		require.Equal(t, e.Code, grpcstatus.Code(e), "grpc-go sends it as it is")
		require.Same(t, e, FromGRPC(fmt.Errorf("wrapped: %w", e)))
	}
}

func TestForeignErrors(t *testing.T) {
	require.Nil(t, FromGRPC(nil))
	require.Equal(t, codes.DeadlineExceeded, FromGRPC(context.DeadlineExceeded).Code)
	require.Equal(t, codes.Canceled, FromGRPC(fmt.Errorf("x: %w", context.Canceled)).Code)
	require.Equal(t, codes.Unknown, FromGRPC(errors.New("other")).Code)
	var none *Error
	code, _ := none.SOMEIP(false)
	require.Equal(t, someip.OK, code)
	require.NoError(t, none.GRPC().Err())
	require.Equal(t, codes.Unknown, (&Error{}).GRPC().Code(), "an error is never a success")
}
