package someip

import "fmt"

// Reserved and well-known ids.
const (
	// ServiceSD is the service id of service discovery messages and magic cookies.
	ServiceSD uint16 = 0xFFFF
	// ServiceOther is the service id under which service discovery announces
	// what does not speak SOME/IP (configuration option "otherserv").
	ServiceOther uint16 = 0xFFFE
	// MethodSD is the method id of service discovery messages.
	MethodSD uint16 = 0x8100

	// AnyService, AnyInstance, AnyMajor and AnyMinor match every value in a Find.
	AnyService  uint16 = 0xFFFF
	AnyInstance uint16 = 0xFFFF
	AnyMajor    uint8  = 0xFF
	AnyMinor    uint32 = 0xFFFF_FFFF
)

// eventBit is set in the method ids of events and notifiers.
const eventBit = 0x8000

// IsEvent reports whether a method id is that of an event or notifier.
func IsEvent(method uint16) bool { return method&eventBit != 0 }

// InstanceKey identifies a service instance on one network. Majors of one
// instance are separate services (SV-8), so the major version is part of it.
type InstanceKey struct {
	Service  uint16
	Instance uint16
	Major    uint8
}

// Valid reports whether k names one concrete instance: no reserved id, no
// wildcard.
func (k InstanceKey) Valid() bool {
	return k.Service != 0 && k.Service != ServiceSD &&
		k.Instance != 0 && k.Instance != AnyInstance && k.Major != AnyMajor
}

// Matches reports whether the concrete instance k is one that want asks for;
// want may hold wildcards.
func (k InstanceKey) Matches(want InstanceKey) bool {
	return k.Service == want.Service &&
		(want.Instance == AnyInstance || k.Instance == want.Instance) &&
		(want.Major == AnyMajor || k.Major == want.Major)
}

// String returns the key as "1234.5678 v1", ids in hexadecimal, a wildcard as "*".
func (k InstanceKey) String() string {
	instance, major := fmt.Sprintf("%04x", k.Instance), fmt.Sprintf("v%d", k.Major)
	if k.Instance == AnyInstance {
		instance = "*"
	}
	if k.Major == AnyMajor {
		major = "v*"
	}
	return fmt.Sprintf("%04x.%s %s", k.Service, instance, major)
}
