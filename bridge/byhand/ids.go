// Package byhand is what a person does with SOME/IP at a keyboard: naming ids,
// looking around on a network, playing a service. The commands of carisma someip
// are made of it.
package byhand

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"carisma.dev/gateway/someip"
)

// ParseID reads an id in hexadecimal, with or without 0x, as all documents write
// them.
func ParseID(text string) (uint16, error) {
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(text), "0x"), 16, 16)
	if err != nil {
		return 0, fmt.Errorf("%q is no id: up to four hexadecimal digits, such as 6001 or 0x6001", text)
	}
	return uint16(v), nil
}

// ParseInstance reads SERVICE or SERVICE.INSTANCE; an instance that is left out, or
// *, is any one. The major version is any.
func ParseInstance(text string) (key someip.InstanceKey, err error) {
	key.Instance, key.Major = someip.AnyInstance, someip.AnyMajor
	service, instance, more := strings.Cut(text, ".")
	if key.Service, err = ParseID(service); err != nil {
		return key, err
	}
	if more && instance != "*" {
		if key.Instance, err = ParseID(instance); err != nil {
			return key, err
		}
	}
	if key.Service == 0 || key.Service >= someip.AnyService || key.Instance == 0 {
		return key, fmt.Errorf("%q names no instance: ids are 0001 to fffe", text)
	}
	return key, nil
}

// ParseHex reads bytes: pairs of hexadecimal digits, with or without 0x before and
// white space, colons, dots or commas between them.
func ParseHex(text string) ([]byte, error) {
	digits := strings.NewReplacer(" ", "", "\t", "", "\n", "", ":", "", ".", "", ",", "").Replace(text)
	digits = strings.TrimPrefix(strings.TrimPrefix(digits, "0x"), "0X")
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil, fmt.Errorf("%q is no payload: pairs of hexadecimal digits are wanted, such as 00 ff 1a", text)
	}
	return b, nil
}
