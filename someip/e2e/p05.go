package e2e

import "encoding/binary"

// p05 is the layout of profile 5. The byte order of the checksum is disputed: the
// published vectors have it little endian, vsomeip big endian.
//
//	0               1               2
//	+-------------------------------+---------------+
//	|             CRC16             |    Counter    |
//	+-------------------------------+---------------+
type p05 struct {
	id        uint16
	bigEndian bool
}

func (p *p05) put(data []byte, at int, counter uint32) {
	h := data[at : at+3]
	h[2] = byte(counter)
	if sum := p.sum(data, at); p.bigEndian {
		binary.BigEndian.PutUint16(h, sum)
	} else {
		binary.LittleEndian.PutUint16(h, sum)
	}
}

func (p *p05) get(data []byte, at int) (uint32, int, error) {
	h := data[at : at+3]
	sum := binary.LittleEndian.Uint16(h)
	if p.bigEndian {
		sum = binary.BigEndian.Uint16(h)
	}
	if sum != p.sum(data, at) {
		return 0, 0, ErrCRC
	}
	return uint32(h[2]), 0, nil
}

// sum takes all but the checksum, then the data id, low byte first.
func (p *p05) sum(data []byte, at int) uint16 {
	crc := crc16CCITT.update(0xFFFF, data[:at])
	crc = crc16CCITT.update(crc, data[at+2:])
	return crc16CCITT.next(crc16CCITT.next(crc, byte(p.id)), byte(p.id>>8))
}
