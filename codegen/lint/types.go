package lint

import "carisma.dev/gateway/codegen/model"

// maxUDP is the largest payload of a datagram that every peer accepts
// (PRS_SOMEIP, transport by UDP).
const maxUDP = 1400

// udpSize finds messages that may be too large for UDP (rule udp-size).
func udpSize(r *report, i *model.Interface) {
	sizes := sizer{}
	check := func(pos model.Position, e *model.SOMEIPElement, what, name string, s *model.Struct) {
		if e == nil || e.Reliable {
			return
		}
		switch n := sizes.members(s); {
		case n.least > maxUDP:
			r.add(pos, Error, "udp-size", "the %s of %s has at least %d bytes, but UDP carries at most %d: make it reliable", what, name, n.least, maxUDP)
		case n.most == unlimited:
			r.add(pos, Info, "udp-size", "the %s of %s has no upper limit, but UDP carries at most %d bytes", what, name, maxUDP)
		case n.most > maxUDP:
			r.add(pos, Warning, "udp-size", "the %s of %s has up to %d bytes, but UDP carries at most %d", what, name, n.most, maxUDP)
		}
	}
	for _, m := range i.AllMethods() {
		check(m.Pos, m.SOMEIP, "request", m.RPC, m.In)
		if !m.FireAndForget {
			check(m.Pos, m.SOMEIP, "response", m.RPC, m.Out)
		}
	}
	for _, e := range i.AllEvents() {
		check(e.Pos, e.SOMEIP, "notification", e.RPC, e.Args)
	}
}

// types applies the rules of types to all that an interface uses.
func types(r *report, i *model.Interface) {
	w := &walker{report: r, structs: map[*model.Struct]bool{}, enums: map[*model.Enum]bool{}, sizes: sizer{}}
	for _, m := range i.AllMethods() {
		w.members(m.In)
		w.members(m.Out)
	}
	for _, e := range i.AllEvents() {
		w.members(e.Args)
	}
}

type walker struct {
	*report
	structs map[*model.Struct]bool
	enums   map[*model.Enum]bool
	sizes   sizer
}

func (w *walker) members(s *model.Struct) {
	if w.structs[s] {
		return
	}
	w.structs[s] = true
	for _, m := range s.Members {
		w.typ(m, m.Type)
	}
}

func (w *walker) typ(m *model.Member, t *model.Type) {
	if t == nil {
		return
	}
	w.typ(m, t.Elem)
	w.typ(m, t.Key)
	switch t.Kind { //nolint:exhaustive // the others have no rule
	case model.EnumKind:
		w.enum(t.Enum)
	case model.StructKind, model.UnionKind:
		w.members(t.Struct)
	case model.ArrayKind, model.MapKind:
		w.elements(m, t)
	}
}

// enum finds literals that do not fit (rule enum-width).
func (w *walker) enum(e *model.Enum) {
	if w.enums[e] {
		return
	}
	w.enums[e] = true
	for _, l := range e.Literals {
		if !e.Holds(l.Value) {
			w.add(e.Pos, Error, "enum-width", "%s = %d does not fit the width %d of %s", l.Name, l.Value, e.Width, e.Name)
		}
	}
}

// elements finds arrays that their length field is too small for (rule
// length-width).
func (w *walker) elements(m *model.Member, t *model.Type) {
	elem := w.sizes.typ(t.Elem)
	if t.Kind == model.MapKind {
		elem = elem.plus(w.sizes.typ(t.Key))
	}
	width, limit := t.SOMEIP.LengthWidth, uint64(max(t.SOMEIP.Max, t.SOMEIP.Count))
	if width == 0 || width >= 8 || limit == 0 {
		return
	}
	holds := uint64(1)<<(8*width) - 1
	switch {
	case mulLimited(elem.least, limit) > holds:
		w.add(m.Pos, Error, "length-width", "%d elements of %s have at least %d bytes, but its length field holds %d",
			limit, m.Name, elem.least*limit, holds)
	case elem.most != unlimited && mulLimited(elem.most, limit) > holds:
		w.add(m.Pos, Warning, "length-width", "%d elements of %s can have %d bytes, but its length field holds %d",
			limit, m.Name, elem.most*limit, holds)
	}
}
