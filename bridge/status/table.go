package status

import (
	"google.golang.org/grpc/codes"

	"carisma.dev/gateway/someip"
)

// The return codes that the table tells apart (someip.md 1.4 by their numbers).
const (
	rcOK             someip.ReturnCode = 0x00
	rcNotOK          someip.ReturnCode = 0x01
	rcUnknownMethod  someip.ReturnCode = 0x03
	rcNotReady       someip.ReturnCode = 0x04
	rcNotReachable   someip.ReturnCode = 0x05
	rcTimeout        someip.ReturnCode = 0x06
	rcMalformed      someip.ReturnCode = 0x09
	rcApplication    someip.ReturnCode = 0x20 // first of the application's range
	rcMax            someip.ReturnCode = 0x5E // last code that may be sent
	dbusStandard                       = "org.freedesktop.DBus.Error."
	dbusOwn                            = "dev.carisma.Error."
	dbusFailed                         = dbusStandard + "Failed"
	dbusApplication                    = dbusOwn + "Application.x" // and the code in hex
	dbusNotReachable                   = dbusOwn + "NotReachable"
)

// fromReturnCode is a row of the table for errors from SOME/IP: the codes from
// first to last.
type fromReturnCode struct {
	first, last someip.ReturnCode
	code        codes.Code
	dbus        string
}

var returnCodes = []fromReturnCode{
	{0x01, 0x01, codes.Unknown, dbusFailed},
	{0x02, 0x02, codes.Unavailable, dbusStandard + "ServiceUnknown"},
	{0x03, 0x03, codes.Unimplemented, dbusStandard + "UnknownMethod"},
	{0x04, 0x04, codes.Unavailable, dbusOwn + "NotReady"},
	{0x05, 0x05, codes.Unavailable, dbusNotReachable},
	{0x06, 0x06, codes.DeadlineExceeded, dbusStandard + "Timeout"},
	{0x07, 0x08, codes.FailedPrecondition, dbusStandard + "NotSupported"},
	{0x09, 0x09, codes.InvalidArgument, dbusStandard + "InvalidArgs"},
	{0x0A, 0x0A, codes.Internal, dbusFailed},
	{0x0B, 0x0F, codes.DataLoss, dbusOwn + "E2E"},
	{0x10, 0x1F, codes.Unknown, dbusFailed},
	{0x20, 0x5E, codes.Unknown, dbusApplication},
	// Reserved: never sent, and dropped by vsomeip. Here so that the table is total.
	{0x5F, 0xFF, codes.Unknown, dbusFailed},
}

func returnCodeRow(code someip.ReturnCode) fromReturnCode {
	for _, row := range returnCodes {
		if row.first <= code && code <= row.last {
			return row
		}
	}
	return returnCodes[0] // 0x00 is no error; one that claims to be is E_NOT_OK (RC-2)
}

// fromCode is a row of the table for errors from gRPC that carry no detail.
type fromCode struct {
	returnCode someip.ReturnCode
	dbus       string
}

var grpcCodes = map[codes.Code]fromCode{
	codes.Canceled:           {rcNotOK, dbusFailed},
	codes.Unknown:            {rcNotOK, dbusFailed},
	codes.InvalidArgument:    {rcMalformed, dbusStandard + "InvalidArgs"},
	codes.DeadlineExceeded:   {rcTimeout, dbusStandard + "Timeout"},
	codes.NotFound:           {rcNotOK, dbusOwn + "NotFound"},
	codes.AlreadyExists:      {rcNotOK, dbusOwn + "AlreadyExists"},
	codes.PermissionDenied:   {rcNotOK, dbusStandard + "AccessDenied"},
	codes.ResourceExhausted:  {rcNotReady, dbusStandard + "LimitsExceeded"},
	codes.FailedPrecondition: {rcNotOK, dbusFailed},
	codes.Aborted:            {rcNotOK, dbusFailed},
	codes.OutOfRange:         {rcMalformed, dbusStandard + "InvalidArgs"},
	codes.Unimplemented:      {rcUnknownMethod, dbusStandard + "UnknownMethod"},
	codes.Internal:           {rcNotOK, dbusFailed},
	codes.Unavailable:        {rcNotReachable, dbusNotReachable},
	codes.DataLoss:           {rcNotOK, dbusFailed},
	codes.Unauthenticated:    {rcNotOK, dbusStandard + "AuthFailed"},
}

func grpcRow(code codes.Code) fromCode {
	if row, ok := grpcCodes[code]; ok {
		return row
	}
	return fromCode{rcNotOK, dbusFailed} // a code of a later gRPC
}

// fromDBusName is a row of the table for errors from D-Bus.
type fromDBusName struct {
	code       codes.Code
	returnCode someip.ReturnCode
}

// dbusNames has the names below org.freedesktop.DBus.Error.
var dbusNames = map[string]fromDBusName{
	"ServiceUnknown":                   {codes.Unavailable, rcNotReachable},
	"NameHasNoOwner":                   {codes.Unavailable, rcNotReachable},
	"Disconnected":                     {codes.Unavailable, rcNotReachable},
	"NoServer":                         {codes.Unavailable, rcNotReachable},
	"UnknownMethod":                    {codes.Unimplemented, rcUnknownMethod},
	"UnknownInterface":                 {codes.Unimplemented, rcUnknownMethod},
	"UnknownProperty":                  {codes.Unimplemented, rcUnknownMethod},
	"NotSupported":                     {codes.Unimplemented, rcUnknownMethod},
	"UnknownObject":                    {codes.NotFound, rcNotOK},
	"FileNotFound":                     {codes.NotFound, rcNotOK},
	"InvalidArgs":                      {codes.InvalidArgument, rcMalformed},
	"InvalidSignature":                 {codes.InvalidArgument, rcMalformed},
	"AccessDenied":                     {codes.PermissionDenied, rcNotOK},
	"AuthFailed":                       {codes.Unauthenticated, rcNotOK},
	"InteractiveAuthorizationRequired": {codes.Unauthenticated, rcNotOK},
	"NoReply":                          {codes.DeadlineExceeded, rcTimeout},
	"Timeout":                          {codes.DeadlineExceeded, rcTimeout},
	"TimedOut":                         {codes.DeadlineExceeded, rcTimeout},
	"LimitsExceeded":                   {codes.ResourceExhausted, rcNotReady},
	"NoMemory":                         {codes.ResourceExhausted, rcNotReady},
	"PropertyReadOnly":                 {codes.FailedPrecondition, rcNotOK},
}

func dbusRow(name string) fromDBusName {
	if len(name) > len(dbusStandard) && name[:len(dbusStandard)] == dbusStandard {
		if row, ok := dbusNames[name[len(dbusStandard):]]; ok {
			return row
		}
	}
	return fromDBusName{codes.Unknown, rcNotOK}
}
