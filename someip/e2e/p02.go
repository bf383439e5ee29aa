package e2e

// p02 is the layout of profiles 2 and 22.
//
//	0               1
//	+---------------+-------+-------+
//	|    CRC8H2F    |       | count |
//	+---------------+-------+-------+
//
// The upper four bits of the second byte are the application's.
type p02 struct {
	ids [16]byte
}

func (p *p02) put(data []byte, at int, counter uint32) {
	h := data[at : at+2]
	h[1] = h[1]&0xF0 | byte(counter)
	h[0] = p.sum(data, at, counter)
}

func (p *p02) get(data []byte, at int) (uint32, int, error) {
	h := data[at : at+2]
	counter := uint32(h[1] & 0x0F)
	if h[0] != p.sum(data, at, counter) {
		return 0, 0, ErrCRC
	}
	return counter, 0, nil
}

// sum takes all but the checksum, then the data id that belongs to the counter.
func (p *p02) sum(data []byte, at int, counter uint32) byte {
	crc := crc8H2F.update(0xFF, data[:at])
	crc = crc8H2F.update(crc, data[at+1:])
	return ^crc8H2F[crc^p.ids[counter&0x0F]]
}
