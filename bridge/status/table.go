package status

import (
	"google.golang.org/grpc/codes"

	"carisma.dev/gateway/someip"
)

// The parts of D-Bus error names.
const (
	dbusStandard     = "org.freedesktop.DBus.Error."
	dbusOwn          = "dev.carisma.Error."
	dbusFailed       = dbusStandard + "Failed"
	dbusNotReachable = dbusOwn + "NotReachable"
	dbusApplication  = dbusOwn + "Application.x" // and the code in hex
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
	codes.Canceled:           {someip.NotOK, dbusFailed},
	codes.Unknown:            {someip.NotOK, dbusFailed},
	codes.InvalidArgument:    {someip.MalformedMessage, dbusStandard + "InvalidArgs"},
	codes.DeadlineExceeded:   {someip.Timeout, dbusStandard + "Timeout"},
	codes.NotFound:           {someip.NotOK, dbusOwn + "NotFound"},
	codes.AlreadyExists:      {someip.NotOK, dbusOwn + "AlreadyExists"},
	codes.PermissionDenied:   {someip.NotOK, dbusStandard + "AccessDenied"},
	codes.ResourceExhausted:  {someip.NotReady, dbusStandard + "LimitsExceeded"},
	codes.FailedPrecondition: {someip.NotOK, dbusFailed},
	codes.Aborted:            {someip.NotOK, dbusFailed},
	codes.OutOfRange:         {someip.MalformedMessage, dbusStandard + "InvalidArgs"},
	codes.Unimplemented:      {someip.UnknownMethod, dbusStandard + "UnknownMethod"},
	codes.Internal:           {someip.NotOK, dbusFailed},
	codes.Unavailable:        {someip.NotReachable, dbusNotReachable},
	codes.DataLoss:           {someip.NotOK, dbusFailed},
	codes.Unauthenticated:    {someip.NotOK, dbusStandard + "AuthFailed"},
}

func grpcRow(code codes.Code) fromCode {
	if row, ok := grpcCodes[code]; ok {
		return row
	}
	return fromCode{someip.NotOK, dbusFailed} // a code of a later gRPC
}

// fromDBusName is a row of the table for errors from D-Bus.
type fromDBusName struct {
	code       codes.Code
	returnCode someip.ReturnCode
}

// dbusNames has the names below org.freedesktop.DBus.Error.
var dbusNames = map[string]fromDBusName{
	"ServiceUnknown":                   {codes.Unavailable, someip.NotReachable},
	"NameHasNoOwner":                   {codes.Unavailable, someip.NotReachable},
	"Disconnected":                     {codes.Unavailable, someip.NotReachable},
	"NoServer":                         {codes.Unavailable, someip.NotReachable},
	"UnknownMethod":                    {codes.Unimplemented, someip.UnknownMethod},
	"UnknownInterface":                 {codes.Unimplemented, someip.UnknownMethod},
	"UnknownProperty":                  {codes.Unimplemented, someip.UnknownMethod},
	"NotSupported":                     {codes.Unimplemented, someip.UnknownMethod},
	"UnknownObject":                    {codes.NotFound, someip.NotOK},
	"FileNotFound":                     {codes.NotFound, someip.NotOK},
	"InvalidArgs":                      {codes.InvalidArgument, someip.MalformedMessage},
	"InvalidSignature":                 {codes.InvalidArgument, someip.MalformedMessage},
	"AccessDenied":                     {codes.PermissionDenied, someip.NotOK},
	"AuthFailed":                       {codes.Unauthenticated, someip.NotOK},
	"InteractiveAuthorizationRequired": {codes.Unauthenticated, someip.NotOK},
	"NoReply":                          {codes.DeadlineExceeded, someip.Timeout},
	"Timeout":                          {codes.DeadlineExceeded, someip.Timeout},
	"TimedOut":                         {codes.DeadlineExceeded, someip.Timeout},
	"LimitsExceeded":                   {codes.ResourceExhausted, someip.NotReady},
	"NoMemory":                         {codes.ResourceExhausted, someip.NotReady},
	"PropertyReadOnly":                 {codes.FailedPrecondition, someip.NotOK},
}

func dbusRow(name string) fromDBusName {
	if len(name) > len(dbusStandard) && name[:len(dbusStandard)] == dbusStandard {
		if row, ok := dbusNames[name[len(dbusStandard):]]; ok {
			return row
		}
	}
	return fromDBusName{codes.Unknown, someip.NotOK}
}
