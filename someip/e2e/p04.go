package e2e

import "encoding/binary"

// p04 is the layout of profiles 4 and 44, all big endian.
//
//	0               1               2               3
//	+-------------------------------+-------------------------------+
//	|            Length             |            Counter            |
//	+-------------------------------+-------------------------------+
//	|                            Data ID                            |
//	+---------------------------------------------------------------+
//	|                            CRC32P4                            |
//	+---------------------------------------------------------------+
//
// Length counts the protected data, this header included: it equals the Length
// field of a message that is protected from its Request ID on.
type p04 struct {
	id uint32 // with the instance in its top byte if the peer wants that
}

func (p *p04) put(data []byte, at int, counter uint32) {
	h := data[at : at+12]
	binary.BigEndian.PutUint16(h, uint16(len(data)))
	binary.BigEndian.PutUint16(h[2:], uint16(counter))
	binary.BigEndian.PutUint32(h[4:], p.id)
	binary.BigEndian.PutUint32(h[8:], p.sum(data, at))
}

func (p *p04) get(data []byte, at int) (uint32, int, error) {
	h := data[at : at+12]
	switch {
	case int(binary.BigEndian.Uint16(h)) != len(data):
		return 0, 0, ErrLength
	case binary.BigEndian.Uint32(h[4:]) != p.id:
		return 0, 4, ErrDataID
	case binary.BigEndian.Uint32(h[8:]) != p.sum(data, at):
		return 0, 8, ErrCRC
	}
	return uint32(binary.BigEndian.Uint16(h[2:])), 0, nil
}

// sum takes all but the checksum.
func (p *p04) sum(data []byte, at int) uint32 {
	crc := crc32P4.update(^uint32(0), data[:at+8])
	return ^crc32P4.update(crc, data[at+12:])
}
