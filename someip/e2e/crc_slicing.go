package e2e

import "encoding/binary"

// The CRCs of profiles 4, 7 and 44 (12.2), least significant bit first, with
// reflected polynomials. hash/crc32 is fast for two other polynomials only, and
// hash/crc64 only with long data.
var (
	crc32P4   = newSlicing[uint32](0xC8DF352F)
	crc64ECMA = newSlicing[uint64](0xC96C5795D7870F42)
)

// slicing computes a CRC sixteen bytes at a time: table i holds the CRC of a byte
// that i zero bytes follow.
type slicing[T uint32 | uint64] [16][256]T

func newSlicing[T uint32 | uint64](poly T) *slicing[T] {
	var t slicing[T]
	for i := range t[0] {
		crc := T(i)
		for range 8 {
			if crc&1 != 0 {
				crc = crc>>1 ^ poly
			} else {
				crc >>= 1
			}
		}
		t[0][i] = crc
	}
	for i := 1; i < len(t); i++ {
		for j, crc := range t[i-1] {
			t[i][j] = crc>>8 ^ t[0][byte(crc)]
		}
	}
	return &t
}

func (t *slicing[T]) update(crc T, data []byte) T {
	for len(data) >= 16 {
		a := binary.LittleEndian.Uint64(data) ^ uint64(crc)
		b := binary.LittleEndian.Uint64(data[8:])
		// Grouped for the processor: b does not wait for the last crc, and what
		// does has a short way to the next one.
		last := (t[7][byte(b)] ^ t[6][byte(b>>8)]) ^ (t[5][byte(b>>16)] ^ t[4][byte(b>>24)]) ^
			(t[3][byte(b>>32)] ^ t[2][byte(b>>40)]) ^ (t[1][byte(b>>48)] ^ t[0][byte(b>>56)])
		high := (t[11][byte(a>>32)] ^ t[10][byte(a>>40)]) ^ (t[9][byte(a>>48)] ^ t[8][byte(a>>56)])
		low := (t[15][byte(a)] ^ t[14][byte(a>>8)]) ^ (t[13][byte(a>>16)] ^ t[12][byte(a>>24)])
		crc = last ^ high ^ low
		data = data[16:]
	}
	for _, b := range data {
		crc = crc>>8 ^ t[0][byte(crc)^b]
	}
	return crc
}
