package someip

import "fmt"

// ReturnCode is the result of a request.
type ReturnCode uint8

// Return codes. Codes from ApplicationFirst to ApplicationLast belong to the
// service and pass through every layer untouched.
const (
	OK                    ReturnCode = 0x00
	NotOK                 ReturnCode = 0x01 // unspecified failure
	UnknownService        ReturnCode = 0x02
	UnknownMethod         ReturnCode = 0x03
	NotReady              ReturnCode = 0x04
	NotReachable          ReturnCode = 0x05
	Timeout               ReturnCode = 0x06
	WrongProtocolVersion  ReturnCode = 0x07
	WrongInterfaceVersion ReturnCode = 0x08
	MalformedMessage      ReturnCode = 0x09
	WrongMessageType      ReturnCode = 0x0A
	E2ERepeated           ReturnCode = 0x0B
	E2EWrongSequence      ReturnCode = 0x0C
	E2EError              ReturnCode = 0x0D
	E2ENotAvailable       ReturnCode = 0x0E
	E2ENoNewData          ReturnCode = 0x0F

	ApplicationFirst ReturnCode = 0x20
	ApplicationLast  ReturnCode = 0x5E
)

// Valid reports whether the code may be on the wire: at most 0x5E.
func (c ReturnCode) Valid() bool { return c <= ApplicationLast }

// Application reports whether the code is one that the service itself defines.
func (c ReturnCode) Application() bool { return c >= ApplicationFirst && c <= ApplicationLast }

var returnCodeNames = [...]string{
	"E_OK", "E_NOT_OK", "E_UNKNOWN_SERVICE", "E_UNKNOWN_METHOD", "E_NOT_READY", "E_NOT_REACHABLE",
	"E_TIMEOUT", "E_WRONG_PROTOCOL_VERSION", "E_WRONG_INTERFACE_VERSION", "E_MALFORMED_MESSAGE",
	"E_WRONG_MESSAGE_TYPE", "E_E2E_REPEATED", "E_E2E_WRONG_SEQUENCE", "E_E2E", "E_E2E_NOT_AVAILABLE",
	"E_E2E_NO_NEW_DATA",
}

// String returns the name of the code as in the specification, or its number.
func (c ReturnCode) String() string {
	if int(c) < len(returnCodeNames) {
		return returnCodeNames[c]
	}
	return fmt.Sprintf("0x%02x", uint8(c))
}
