package e2e

import "encoding/binary"

// p06 is the layout of profile 6, all big endian.
//
//	0               1               2               3               4
//	+-------------------------------+-------------------------------+---------------+
//	|             CRC16             |            Length             |    Counter    |
//	+-------------------------------+-------------------------------+---------------+
//
// Length counts the protected data, this header included.
type p06 struct {
	id uint16
}

func (p *p06) put(data []byte, at int, counter uint32) {
	h := data[at : at+5]
	binary.BigEndian.PutUint16(h[2:], uint16(len(data)))
	h[4] = byte(counter)
	binary.BigEndian.PutUint16(h, p.sum(data, at))
}

func (p *p06) get(data []byte, at int) (uint32, int, error) {
	h := data[at : at+5]
	switch {
	case int(binary.BigEndian.Uint16(h[2:])) != len(data):
		return 0, 2, ErrLength
	case binary.BigEndian.Uint16(h) != p.sum(data, at):
		return 0, 0, ErrCRC
	}
	return uint32(h[4]), 0, nil
}

// sum takes all but the checksum, then the data id, high byte first.
func (p *p06) sum(data []byte, at int) uint16 {
	crc := crc16CCITT.update(0xFFFF, data[:at])
	crc = crc16CCITT.update(crc, data[at+2:])
	return crc16CCITT.next(crc16CCITT.next(crc, byte(p.id>>8)), byte(p.id))
}
