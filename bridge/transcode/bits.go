package transcode

// Packed bits (CommonAPI's SomeIpIntegerBitWidth): members of a struct that
// follow each other share a run of bytes, which they fill from the least
// significant bit of the first byte.

// readBits returns the value of s.bits bits at a place in a run.
func (s *scalar) readBits(run []byte, first int) uint64 {
	var v uint64
	for have := 0; have < int(s.bits); {
		at := first + have
		in := at % 8
		take := min(8-in, int(s.bits)-have)
		part := uint64(run[at/8]>>in) & (1<<take - 1)
		v |= part << have
		have += take
	}
	return s.extend(v)
}

// writeBits sets the value of s.bits bits at a place in a run of zeros.
func (s *scalar) writeBits(run []byte, first int, v uint64) {
	for have := 0; have < int(s.bits); {
		at := first + have
		in := at % 8
		take := min(8-in, int(s.bits)-have)
		part := byte(v>>have) & (1<<take - 1)
		run[at/8] |= part << in
		have += take
	}
}
