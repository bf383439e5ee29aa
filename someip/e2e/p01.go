package e2e

// p01 is the layout of profiles 1 and 11.
//
//	0               1
//	+---------------+-------+-------+
//	|     CRC8      | id hi | count |
//	+---------------+-------+-------+
//
// The nibble of the data id is there in mode Nibble only; in the others these
// four bits are the application's.
type p01 struct {
	id   uint16
	mode DataIDMode
}

const p01Counters = 15 // 15 is no counter

func (p *p01) put(data []byte, at int, counter uint32) {
	h := data[at : at+2]
	if p.mode == Nibble {
		h[1] = byte(p.id>>8) << 4
	}
	h[1] = h[1]&0xF0 | byte(counter)
	h[0] = p.sum(data, at, counter)
}

func (p *p01) get(data []byte, at int) (uint32, int, error) {
	h := data[at : at+2]
	counter := uint32(h[1] & 0x0F)
	switch {
	case counter >= p01Counters:
		return 0, 1, ErrCounter
	case p.mode == Nibble && h[1]>>4 != byte(p.id>>8):
		return 0, 1, ErrDataID
	case h[0] != p.sum(data, at, counter):
		return 0, 0, ErrCRC
	}
	return counter, 0, nil
}

// sum starts at 0 and takes the data id first, then all but the checksum.
func (p *p01) sum(data []byte, at int, counter uint32) byte {
	lo, hi := byte(p.id), byte(p.id>>8)
	var crc byte
	switch {
	case p.mode == Both:
		crc = crc8J1850[crc8J1850[lo]^hi]
	case p.mode == Alt && counter%2 != 0:
		crc = crc8J1850[hi]
	case p.mode == Nibble:
		crc = crc8J1850[crc8J1850[lo]] // a zero byte in place of the high one
	default:
		crc = crc8J1850[lo]
	}
	crc = crc8J1850.update(crc, data[:at])
	return crc8J1850.update(crc, data[at+1:])
}
