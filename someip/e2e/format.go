package e2e

import "carisma.dev/gateway/someip"

// scheme is the layout and checksum of a profile. The header starts at byte at of
// data and all of it is there; what data is longer than the length field can say
// was refused before.
type scheme interface {
	// put writes the header, checksum included.
	put(data []byte, at int, counter uint32)
	// get verifies the header and returns its counter. Of a fault it returns the
	// offset in the header and the reason.
	get(data []byte, at int) (counter uint32, offset int, reason error)
}

// format is what a protector and a checker of the same stream have in common.
type format struct {
	scheme
	traits
	offset   int    // of the header in plain data
	start    int    // of the protected part in a message
	min, max uint64 // of the protected data
}

func newFormat(c Config) (format, error) {
	if err := c.Validate(); err != nil {
		return format{}, err
	}
	t, _ := c.Profile.traits()
	f := format{traits: t, offset: c.Offset, start: c.Start, min: uint64(c.MinLength), max: uint64(c.MaxLength)}
	if f.start == 0 {
		f.start = requestIDOffset
	}
	if f.max == 0 || f.max > t.maxLength {
		f.max = t.maxLength
	}
	switch c.Profile {
	case P02, P22:
		f.scheme = &p02{ids: c.DataIDList}
	case P04, P44:
		f.scheme = &p04{id: c.DataID | uint32(c.P04Instance)<<24}
	case P05:
		f.scheme = &p05{id: uint16(c.DataID), bigEndian: c.P05CRCBigEndian}
	case P06:
		f.scheme = &p06{id: uint16(c.DataID)}
	case P07:
		f.scheme = newP07(c)
	default: // P01, P11
		f.scheme = &p01{id: uint16(c.DataID), mode: c.DataIDMode}
	}
	return f, nil
}

// fits checks the size of protected data with its header at byte at.
func (f *format) fits(size, at int) error {
	switch {
	case size-at < f.size || uint64(size) < f.min:
		return ErrShort
	case uint64(size) > f.max:
		return ErrLong
	}
	return nil
}

// inMessage returns where the header stands in the protected part of a message.
func (f *format) inMessage() int { return someip.HeaderSize - f.start + f.offset }
