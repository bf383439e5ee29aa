package e2e

import (
	"fmt"

	"carisma.dev/gateway/someip"
)

// DataIDMode says how profiles 1 and 11 include the data id in the checksum.
type DataIDMode uint8

// The data id modes.
const (
	Both   DataIDMode = iota // low byte, high byte
	Alt                      // low byte with even counters, high byte with odd ones; not in P11
	Low                      // low byte only; not in P11
	Nibble                   // low byte; the low nibble of the high byte stands in the header
)

// requestIDOffset is where the protected part of a message starts by default (12.1).
const requestIDOffset = 8

// Config describes one protected data stream. Both sides must have the same.
type Config struct {
	Profile Profile

	DataID     uint32     // 16 bits in P01, P05, P06, P11 (12 in mode Nibble); none in P02, P22
	DataIDMode DataIDMode // P01, P11
	DataIDList [16]byte   // P02, P22: the data id for each counter value

	// Offset is the number of bytes ahead of the E2E header: of the data in
	// Protect and Check, of the payload in the functions for messages. There 0,
	// right behind the SOME/IP header, is what AUTOSAR calls an offset of 64 bits.
	Offset int
	// Start is the byte of a message at which its protected part starts, 8 to 16.
	// 0 stands for 8, the Request ID.
	Start int
	// MinLength and MaxLength bound the protected data in bytes, header included.
	// 0: no bound but those of the profile.
	MinLength, MaxLength int

	// MaxDelta is the largest step of the counter that a checker accepts, 1 if no
	// message may be lost. 0: half of the counter's range, so that whatever is
	// not older than the last message is accepted.
	MaxDelta uint32
	// Strict keeps the last accepted counter as the reference when a message is
	// out of sequence. By default its counter becomes the new reference, so that
	// the message after it is accepted again (case 109). A strict checker must be
	// Reset when the sender restarts.
	Strict bool

	// Deviations of peers (12.5), see ForVsomeip.
	P04Instance     uint8 // not 0: sent in the top byte of the data id, ored with what is there
	P05CRCBigEndian bool  // byte order of the CRC, little endian by default
	P07Length16     bool  // the length field holds the low 16 bits of the length only
}

// ForVsomeip returns the configuration with vsomeip's deviations for a service
// instance (12.5): P01 protects the payload only, P04 carries the instance in its
// data id (case 107), P05's CRC is big endian, P07's length has 16 bits.
//
// It fails for P04 if the instance does not fit a byte, and for profiles that
// vsomeip does not have.
func (c Config) ForVsomeip(instance uint16) (Config, error) {
	switch c.Profile {
	case P01:
		c.Start = someip.HeaderSize
	case P04:
		if instance > 0xFF {
			return c, &ConfigError{Field: "P04Instance", Reason: fmt.Sprintf("instance 0x%04x does not fit the data id", instance)}
		}
		c.P04Instance = uint8(instance)
	case P05:
		c.P05CRCBigEndian = true
	case P07:
		c.P07Length16 = true
	default:
		return c, &ConfigError{Field: "Profile", Reason: "vsomeip has no " + c.Profile.String()}
	}
	return c, nil
}

// ConfigError reports a configuration that cannot be used.
type ConfigError struct {
	Field  string // of Config
	Reason string
}

// Error implements error.
func (e *ConfigError) Error() string { return "e2e: " + e.Field + ": " + e.Reason }

// Validate reports the first fault of the configuration as a *ConfigError.
func (c Config) Validate() error {
	t, known := c.Profile.traits()
	fail := func(field, format string, args ...any) error {
		return &ConfigError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case !known:
		return fail("Profile", "unknown profile %d", uint8(c.Profile))
	case c.DataID > t.maxDataID:
		return fail("DataID", "0x%x is above 0x%x", c.DataID, t.maxDataID)
	case c.DataIDMode > Nibble:
		return fail("DataIDMode", "unknown mode %d", uint8(c.DataIDMode))
	case c.DataIDMode != Both && c.Profile != P01 && c.Profile != P11:
		return fail("DataIDMode", "%v has no modes", c.Profile)
	case c.Profile == P11 && (c.DataIDMode == Alt || c.DataIDMode == Low):
		return fail("DataIDMode", "P11 has Both and Nibble only")
	case c.DataIDMode == Nibble && c.DataID > 0xFFF:
		return fail("DataID", "0x%x is above 0xfff, the limit of mode Nibble", c.DataID)
	case c.Offset < 0:
		return fail("Offset", "%d is negative", c.Offset)
	case c.Start != 0 && (c.Start < requestIDOffset || c.Start > someip.HeaderSize):
		return fail("Start", "%d is not in 8..16", c.Start)
	case c.MinLength < 0:
		return fail("MinLength", "%d is negative", c.MinLength)
	case c.MaxLength < 0 || c.MaxLength != 0 && c.MaxLength < c.MinLength:
		return fail("MaxLength", "%d is below the minimum %d", c.MaxLength, c.MinLength)
	case uint64(c.MaxDelta) >= t.modulo:
		return fail("MaxDelta", "%d is above %d", c.MaxDelta, t.modulo-1)
	case c.P04Instance != 0 && c.Profile != P04:
		return fail("P04Instance", "%v does not carry it", c.Profile)
	}
	return nil
}
