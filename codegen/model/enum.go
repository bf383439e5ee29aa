package model

// Holds reports whether SOME/IP can carry a value of the enum in its width. The
// enum is unsigned there unless one of its literals is negative.
func (e *Enum) Holds(value int64) bool {
	switch {
	case e.Width >= 8:
		return value >= 0 || e.signed()
	case e.signed():
		limit := int64(1) << (8*e.Width - 1)
		return -limit <= value && value < limit
	}
	return 0 <= value && value < 1<<(8*e.Width)
}
