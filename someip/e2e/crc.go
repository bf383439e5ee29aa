package e2e

// The CRCs of profiles 1, 2, 5, 6, 11 and 22 (12.2), most significant bit first,
// one table look-up a byte. The messages that they protect are short.
var (
	crc8J1850  = newCRC8(0x1D)
	crc8H2F    = newCRC8(0x2F)
	crc16CCITT = newCRC16(0x1021)
)

type crc8 [256]uint8

func newCRC8(poly uint8) *crc8 {
	var t crc8
	for i := range t {
		crc := uint8(i)
		for range 8 {
			if crc&0x80 != 0 {
				crc = crc<<1 ^ poly
			} else {
				crc <<= 1
			}
		}
		t[i] = crc
	}
	return &t
}

func (t *crc8) update(crc uint8, data []byte) uint8 {
	for _, b := range data {
		crc = t[crc^b]
	}
	return crc
}

type crc16 [256]uint16

func newCRC16(poly uint16) *crc16 {
	var t crc16
	for i := range t {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ poly
			} else {
				crc <<= 1
			}
		}
		t[i] = crc
	}
	return &t
}

func (t *crc16) next(crc uint16, b byte) uint16 { return crc<<8 ^ t[byte(crc>>8)^b] }

func (t *crc16) update(crc uint16, data []byte) uint16 {
	for _, b := range data {
		crc = t.next(crc, b)
	}
	return crc
}
