package payload

// bitRun is a run of packed bits: members of a struct that follow each other and
// share bytes, which they fill from the least significant bit of the first byte.
type bitRun struct {
	start int // offset of the first byte
	bytes int // in all, 0 before the first member
	used  int // bits so far
}

// runBytes is the size of the run of packed members that starts with member i.
func (l *Layout) runBytes(i int) int {
	bits := 0
	for j := i; j < len(l.Members) && l.Members[j].Layout.Bits > 0; j++ {
		if j > i && l.Members[j].Layout.Align > 1 {
			break
		}
		bits += int(l.Members[j].Layout.Bits)
	}
	return (bits + 7) / 8
}

// bits reads a packed member.
func (d *decoder) bits(l *Layout, i int, run *bitRun) (any, error) {
	m := l.Members[i].Layout
	if run.bytes == 0 || m.Align > 1 {
		d.Align(int(m.Align))
		*run = bitRun{start: d.Offset(), bytes: l.runBytes(i)}
		d.Skip(run.bytes)
	}
	if d.Err() != nil {
		return nil, d.Err()
	}
	var v uint64
	for have := range int(m.Bits) {
		at := run.used + have
		v |= uint64(d.b[run.start+at/8]>>(at%8)&1) << have
	}
	run.used += int(m.Bits)
	return d.number(m, v, int(m.Bits), run.start)
}

// bits writes a packed member.
func (e *encoder) bits(l *Layout, i int, run *bitRun, value any) error {
	m := l.Members[i].Layout
	v, err := toNumber(m, value)
	if err != nil {
		return err
	}
	if run.bytes == 0 || m.Align > 1 {
		e.Align(int(m.Align))
		*run = bitRun{start: len(e.b), bytes: l.runBytes(i)}
		e.zeros(run.bytes)
	}
	for have := range int(m.Bits) {
		at := run.used + have
		e.b[run.start+at/8] |= byte(v>>have&1) << (at % 8)
	}
	run.used += int(m.Bits)
	return nil
}
