package status

import (
	"bytes"
	"fmt"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip"
)

// FromSOMEIP returns the error that a SOME/IP answer is. The payload is copied;
// exception says that it came as ERROR (0x81). An exception with return code
// 0x00 violates the protocol and is taken for E_NOT_OK (RC-2). The interface
// names application errors and may be nil.
func FromSOMEIP(code someip.ReturnCode, exception bool, payload []byte, iface *model.Interface) *Error {
	if code == someip.OK {
		code = someip.NotOK
	}
	e := &Error{
		Code:       returnCodeRow(code).code,
		Message:    code.String(),
		ReturnCode: code,
		Exception:  exception,
		Payload:    bytes.Clone(payload),
	}
	if code.Application() {
		e.Application = applicationName(code, iface)
		e.Message = fmt.Sprintf("application error 0x%02x", uint8(code))
		if e.Application != "" {
			e.Message = fmt.Sprintf("%s (0x%02x)", e.Application, uint8(code))
		}
	}
	return e
}

// SOMEIP returns what SOME/IP answers for the error: the original return code
// and payload where it came from SOME/IP, else the table's code without payload
// (RC-4). The form, RESPONSE or ERROR, is e.Exception. With standardCodesOnly
// the codes that AUTOSAR calls local, 0x04 to 0x06, become E_NOT_OK. A nil
// error is E_OK.
func (e *Error) SOMEIP(standardCodesOnly bool) (someip.ReturnCode, []byte) {
	if e == nil {
		return someip.OK, nil
	}
	code, payload := e.ReturnCode, e.Payload
	switch {
	case code == someip.OK && e.DBusName != "":
		code, payload = dbusRow(e.DBusName).returnCode, nil
	case code == someip.OK:
		code, payload = grpcRow(e.Code).returnCode, nil
	case !code.Valid():
		code = someip.NotOK
	}
	if standardCodesOnly && someip.NotReady <= code && code <= someip.Timeout {
		code = someip.NotOK
	}
	return code, payload
}
