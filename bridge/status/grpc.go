package status

import (
	"errors"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/someip"
)

// GRPC returns the gRPC status of the error, with a carisma.v1.ErrorDetail that
// keeps what the gRPC code cannot say. A nil error is OK.
func (e *Error) GRPC() *grpcstatus.Status {
	if e == nil {
		return nil
	}
	code := e.Code
	if code == codes.OK {
		code = codes.Unknown // an error is never a success
	}
	st := grpcstatus.New(code, e.Message)
	detail := e.detail()
	if detail == nil {
		return st
	}
	if with, err := st.WithDetails(detail); err == nil {
		return with
	}
	return st
}

// GRPCStatus is GRPC: with it grpc-go sends the error as it is.
func (e *Error) GRPCStatus() *grpcstatus.Status { return e.GRPC() }

// detail returns what to send along, nil if code and message say all.
func (e *Error) detail() *carismav1.ErrorDetail {
	if e.ReturnCode == someip.OK && e.DBusName == "" && e.FieldPath == "" && e.Reason == "" && e.Since.IsZero() {
		return nil
	}
	d := &carismav1.ErrorDetail{
		DbusName:  e.DBusName,
		FieldPath: e.FieldPath,
		Reason:    e.Reason,
	}
	if e.ReturnCode != someip.OK {
		d.ReturnCode = uint32(e.ReturnCode)
		d.Exception = e.Exception
		d.Payload = e.Payload
		d.ApplicationError = e.Application
	}
	if !e.Since.IsZero() {
		d.Since = timestamppb.New(e.Since)
	}
	return d
}

// FromGRPC returns the error that a gRPC call ended with, nil for success. An
// *Error in its chain is returned as it is; the error of a context is what gRPC
// makes of it.
func FromGRPC(err error) *Error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	st, ok := grpcstatus.FromError(err)
	if !ok {
		st = grpcstatus.FromContextError(err)
	}
	if st.Code() == codes.OK {
		return newError(codes.Unknown, err.Error())
	}
	e := newError(st.Code(), st.Message())
	for _, detail := range st.Details() {
		if d, ok := detail.(*carismav1.ErrorDetail); ok {
			e.restore(d)
			break
		}
	}
	return e
}

// restore takes over a detail that came from outside: what it may not say on
// SOME/IP is left out.
func (e *Error) restore(d *carismav1.ErrorDetail) {
	e.DBusName = d.GetDbusName()
	e.FieldPath = d.GetFieldPath()
	e.Reason = d.GetReason()
	if d.GetSince().IsValid() {
		e.Since = d.GetSince().AsTime()
	}
	if code := d.GetReturnCode(); code != 0 && code <= uint32(someip.ApplicationLast) {
		e.ReturnCode = someip.ReturnCode(code)
		e.Exception = d.GetException()
		e.Payload = d.GetPayload()
		e.Application = d.GetApplicationError()
	}
}
