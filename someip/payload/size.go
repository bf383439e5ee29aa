package payload

// sizes knows the fewest bytes that a value of each layout takes, without
// padding.
type sizes map[*Layout]extent

// extent is the least size of a layout and how deep it always nests.
type extent struct {
	size  uint64
	depth int
	open  bool // being computed: a layout met again meanwhile contains itself
}

// min returns the least size of a layout. One that contains itself where it
// cannot be left out, or nests too deep, is an error.
func (s sizes) min(l *Layout) (uint64, error) {
	e, err := s.extent(l)
	return e.size, err
}

func (s sizes) extent(l *Layout) (extent, error) {
	if e, ok := s[l]; ok {
		if e.open {
			return e, bad("contains itself")
		}
		return e, nil
	}
	s[l] = extent{open: true}
	e, err := s.compute(l)
	if err != nil {
		return e, err
	}
	if e.depth > MaxDepth {
		return e, bad("nested deeper than %d", MaxDepth)
	}
	s[l] = e
	return e, nil
}

func (s sizes) compute(l *Layout) (extent, error) {
	if l.Kind.Scalar() {
		if l.Bits > 0 {
			return extent{}, nil
		}
		return extent{size: uint64(l.Width)}, nil
	}
	e := extent{size: uint64(l.LengthWidth), depth: 1}
	switch l.Kind {
	case String, Bytes:
		e.size += uint64(l.Size)
	case Union:
		e.size += uint64(l.Width)
		if l.LengthWidth == 0 {
			e.size += uint64(l.Max)
		}
	case Array:
		if l.Count > 0 {
			elem, err := s.extent(l.Elem)
			if err != nil {
				return e, at(err, "[]")
			}
			e.size += elem.size * uint64(l.Count)
			e.depth += elem.depth
		}
	case Struct:
		for i, m := range l.Members {
			if m.Layout.Bits > 0 && (i == 0 || l.Members[i-1].Layout.Bits == 0 || m.Layout.Align > 1) {
				e.size += uint64(l.runBytes(i))
			}
			if err := s.addMember(&e, m); err != nil {
				return e, at(err, m.Name)
			}
		}
	default: // a map may be empty
	}
	return e, nil
}

func (s sizes) addMember(e *extent, m Member) error {
	if m.Optional {
		return nil
	}
	member, err := s.extent(m.Layout)
	if err != nil {
		return err
	}
	e.size += member.size
	e.depth = max(e.depth, member.depth+1)
	if m.Tagged {
		e.size += 2
	}
	return nil
}
