package e2e

import "fmt"

// Profile is an end-to-end protection profile (12.3).
type Profile uint8

// The profiles.
const (
	P01 Profile = 1  // CRC8, counter 0..14, 16 bit data id
	P02 Profile = 2  // CRC8H2F, counter 0..15, list of data ids
	P04 Profile = 4  // CRC32P4, 16 bit length and counter, 32 bit data id
	P05 Profile = 5  // CRC16, 8 bit counter, 16 bit data id
	P06 Profile = 6  // CRC16, 16 bit length, 8 bit counter, 16 bit data id
	P07 Profile = 7  // CRC64, 32 bit length, counter and data id
	P11 Profile = 11 // as P01, fewer data id modes
	P22 Profile = 22 // as P02
	P44 Profile = 44 // the same bytes as P04
)

// traits are what the profiles differ in besides the layout of the header.
type traits struct {
	size      int    // bytes of the header
	modulo    uint64 // the counter runs from 0 to modulo-1
	first     uint32 // counter of the first message
	maxDataID uint32
	maxLength uint64 // of the protected data, by the width of the length field
}

func (p Profile) traits() (traits, bool) {
	const maxUint32 = 0xFFFFFFFF
	switch p {
	case P01, P11:
		return traits{size: 2, modulo: 15, maxDataID: 0xFFFF, maxLength: maxUint32}, true
	case P02, P22:
		// P02 counts before it protects. P22 is reported both ways; a checker
		// accepts either first value, see [Protector.SetCounter] for the other.
		return traits{size: 2, modulo: 16, first: 1, maxLength: maxUint32}, true
	case P04, P44:
		return traits{size: 12, modulo: 1 << 16, maxDataID: maxUint32, maxLength: 0xFFFF}, true
	case P05:
		return traits{size: 3, modulo: 1 << 8, maxDataID: 0xFFFF, maxLength: maxUint32}, true
	case P06:
		return traits{size: 5, modulo: 1 << 8, maxDataID: 0xFFFF, maxLength: 0xFFFF}, true
	case P07:
		return traits{size: 20, modulo: 1 << 32, maxDataID: maxUint32, maxLength: maxUint32}, true
	default:
		return traits{}, false
	}
}

// HeaderSize returns the bytes that the profile adds to a message (12.1), 0 for
// an unknown profile.
func (p Profile) HeaderSize() int {
	t, _ := p.traits()
	return t.size
}

// String returns the usual name, such as "P04".
func (p Profile) String() string { return fmt.Sprintf("P%02d", uint8(p)) }
