package e2e

import "encoding/binary"

// p07 is the layout of profile 7, all big endian.
//
//	0               1               2               3
//	+---------------------------------------------------------------+
//	|                                                               |
//	+                             CRC64                             +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|                            Length                             |
//	+---------------------------------------------------------------+
//	|                            Counter                            |
//	+---------------------------------------------------------------+
//	|                            Data ID                            |
//	+---------------------------------------------------------------+
//
// Length counts the protected data, this header included.
type p07 struct {
	id         uint32
	lengthMask uint32 // the bits of the length that are sent
}

func newP07(c Config) *p07 {
	p := &p07{id: c.DataID, lengthMask: 0xFFFFFFFF}
	if c.P07Length16 {
		p.lengthMask = 0xFFFF
	}
	return p
}

func (p *p07) put(data []byte, at int, counter uint32) {
	h := data[at : at+20]
	binary.BigEndian.PutUint32(h[8:], uint32(len(data))&p.lengthMask)
	binary.BigEndian.PutUint32(h[12:], counter)
	binary.BigEndian.PutUint32(h[16:], p.id)
	binary.BigEndian.PutUint64(h, p.sum(data, at))
}

func (p *p07) get(data []byte, at int) (uint32, int, error) {
	h := data[at : at+20]
	switch {
	case binary.BigEndian.Uint32(h[8:]) != uint32(len(data))&p.lengthMask:
		return 0, 8, ErrLength
	case binary.BigEndian.Uint32(h[16:]) != p.id:
		return 0, 16, ErrDataID
	case binary.BigEndian.Uint64(h) != p.sum(data, at):
		return 0, 0, ErrCRC
	}
	return binary.BigEndian.Uint32(h[12:]), 0, nil
}

// sum takes all but the checksum.
func (p *p07) sum(data []byte, at int) uint64 {
	crc := crc64ECMA.update(^uint64(0), data[:at])
	return ^crc64ECMA.update(crc, data[at+8:])
}
