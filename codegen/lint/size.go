package lint

import (
	"math"

	"carisma.dev/gateway/codegen/model"
)

// unlimited is the size of what has no upper limit.
const unlimited = math.MaxUint64

// size is the least and largest number of bytes of a type on SOME/IP.
type size struct{ least, most uint64 }

func (s size) plus(o size) size {
	return size{s.least + o.least, addLimited(s.most, o.most)}
}

// addLimited and mulLimited stop at unlimited.
func addLimited(a, b uint64) uint64 {
	if a > unlimited-b {
		return unlimited
	}
	return a + b
}

func mulLimited(a, b uint64) uint64 {
	if b != 0 && a > unlimited/b {
		return unlimited
	}
	return a * b
}

func exactly(n uint64) size { return size{n, n} }

// sizer measures types, each struct once.
type sizer map[*model.Struct]size

func (z sizer) members(s *model.Struct) size {
	if known, ok := z[s]; ok {
		return known
	}
	z[s] = size{0, unlimited} // what a struct inside itself has
	var sum size
	for _, m := range s.Members {
		one := z.typ(m.Type)
		if m.Type.SOMEIP.DataID >= 0 {
			one = one.plus(exactly(2)) // the tag
		}
		if m.Optional {
			one.least = 0
		}
		sum = sum.plus(one)
	}
	z[s] = sum
	return sum
}

func (z sizer) typ(t *model.Type) size {
	d := t.SOMEIP
	length := exactly(uint64(d.LengthWidth))
	switch t.Kind { //nolint:exhaustive // integers and enums have their width
	case model.Bool:
		return exactly(1)
	case model.Float32:
		return exactly(4)
	case model.Float64:
		return exactly(8)
	case model.String, model.Bytes:
		if d.FixedLength > 0 {
			return length.plus(exactly(uint64(d.FixedLength)))
		}
		return length.plus(size{emptyText(t), limit(uint64(d.Max))})
	case model.StructKind:
		return length.plus(z.members(t.Struct))
	case model.ArrayKind:
		return length.plus(times(z.typ(t.Elem), d))
	case model.MapKind:
		return length.plus(times(z.typ(t.Key).plus(z.typ(t.Elem)), d))
	case model.UnionKind:
		all := size{0, 0}
		for _, m := range t.Struct.Members {
			all.most = max(all.most, z.typ(m.Type).most)
		}
		return length.plus(exactly(uint64(d.Width))).plus(all)
	}
	return exactly(uint64(d.Width))
}

func times(elem size, d model.SOMEIPType) size {
	if d.Count > 0 {
		return size{mulLimited(elem.least, uint64(d.Count)), mulLimited(elem.most, uint64(d.Count))}
	}
	return size{0, mulLimited(elem.most, limit(uint64(d.Max)))}
}

func limit(n uint64) uint64 {
	if n == 0 {
		return unlimited
	}
	return n
}

// emptyText is the size of the byte order mark and terminator.
func emptyText(t *model.Type) uint64 {
	d, n := t.SOMEIP, uint64(0)
	unit, mark := uint64(1), uint64(3)
	if d.Encoding != model.UTF8 {
		unit, mark = 2, 2
	}
	if d.BOM {
		n += mark
	}
	if d.Terminator {
		n += unit
	}
	return n
}
