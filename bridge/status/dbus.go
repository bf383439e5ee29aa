package status

import (
	"fmt"

	"carisma.dev/gateway/someip"
)

// FromDBus returns the error that a D-Bus error reply is.
func FromDBus(name, message string) *Error {
	e := newError(dbusRow(name).code, message)
	e.DBusName = name
	if message == "" {
		e.Message = name
	}
	return e
}

// DBus returns the D-Bus name of the error: the original one where it came from
// D-Bus, else the table's. Application errors have a name of their own with the
// return code. The error must not be nil.
func (e *Error) DBus() string {
	if e.DBusName != "" {
		return e.DBusName
	}
	if e.ReturnCode == someip.OK {
		return grpcRow(e.Code).dbus
	}
	name := returnCodeRow(e.ReturnCode).dbus
	if name == dbusApplication {
		name += fmt.Sprintf("%02x", uint8(e.ReturnCode))
	}
	return name
}
