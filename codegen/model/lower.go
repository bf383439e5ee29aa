package model

import (
	"fmt"

	"carisma.dev/gateway/someip/payload"
)

// SOMEIPLayout returns how SOME/IP carries the struct as an argument list: the
// payload of a message. A length field of the struct itself counts only where it
// is a member. The error is that of a deployment that cannot be, with the
// position of the struct and the path of the member.
func (s *Struct) SOMEIPLayout() (*payload.Layout, error) {
	lower := lowering{}
	l := lower.structLayout(s, structUse{})
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("%v: %s: %w", s.Pos, s.Name, err)
	}
	return l, nil
}

// taggedLengthWidth is the length field of TLV members whose type has none.
const taggedLengthWidth = 4

// structUse is what a layout of a struct depends on beside the struct itself.
type structUse struct {
	lengthWidth, align uint8
	littleEndian       bool
}

type structKey struct {
	s *Struct
	structUse
}

// lowering keeps the layouts of structs, so that a recursive type ends.
type lowering map[structKey]*payload.Layout

func (lower lowering) structLayout(s *Struct, use structUse) *payload.Layout {
	key := structKey{s, use}
	if l := lower[key]; l != nil {
		return l
	}
	l := &payload.Layout{
		Kind:          payload.Struct,
		LengthWidth:   use.lengthWidth,
		LittleEndian:  use.littleEndian,
		Align:         use.align,
		DynamicLength: s.SOMEIP.DynamicLength,
	}
	lower[key] = l
	for _, m := range s.Members {
		l.Members = append(l.Members, lower.member(m))
	}
	return l
}

func (lower lowering) member(m *Member) payload.Member {
	id := m.Type.SOMEIP.DataID
	return payload.Member{
		Name:     m.Name,
		Layout:   lower.typeLayout(m.Type, id >= 0),
		Tagged:   id >= 0,
		DataID:   uint16(min(max(id, 0), 0xFFFF)),
		Optional: m.Optional,
	}
}

// typeLayout returns the layout of a type. The tag of a complex member says that
// a length field follows, also where the type has none of its own.
func (lower lowering) typeLayout(t *Type, tagged bool) *payload.Layout {
	d := t.SOMEIP
	if t.Kind == StructKind {
		width := d.LengthWidth
		if width == 0 {
			width = t.Struct.SOMEIP.LengthWidth
		}
		if width == 0 && tagged {
			width = taggedLengthWidth
		}
		return lower.structLayout(t.Struct, structUse{width, d.Align, d.LittleEndian})
	}
	l := &payload.Layout{
		Width:        d.Width,
		Bits:         d.Bits,
		LengthWidth:  d.LengthWidth,
		Max:          d.Max,
		LittleEndian: d.LittleEndian,
		Align:        d.Align,
	}
	natural := func(kind payload.Kind, width uint8) {
		l.Kind = kind
		if l.Width == 0 {
			l.Width = width
		}
	}
	switch t.Kind {
	case Bool:
		natural(payload.Bool, 1)
	case Int8:
		natural(payload.Int, 1)
	case Int16:
		natural(payload.Int, 2)
	case Int32:
		natural(payload.Int, 4)
	case Int64:
		natural(payload.Int, 8)
	case Uint8:
		natural(payload.Uint, 1)
	case Uint16:
		natural(payload.Uint, 2)
	case Uint32:
		natural(payload.Uint, 4)
	case Uint64:
		natural(payload.Uint, 8)
	case Float32:
		natural(payload.Float, 4)
	case Float64:
		natural(payload.Float, 8)
	case EnumKind:
		natural(payload.Enum, max(t.Enum.Width, 1))
		l.Signed = t.Enum.signed()
	case String:
		l.Kind = payload.String
		l.Size = d.FixedLength
		l.Text = payload.Text{Encoding: payload.Encoding(d.Encoding), BOM: d.BOM, Terminator: d.Terminator}
	case Bytes:
		l.Kind = payload.Bytes
		l.Size = d.FixedLength
	case ArrayKind:
		l.Kind = payload.Array
		l.Elem = lower.typeLayout(t.Elem, false)
		if l.Count = d.Count; l.Count == 0 && l.LengthWidth == 0 {
			l.Count = d.Max // CommonAPI: without length field exactly the maximum (someip.md 5.4)
		}
	case MapKind:
		l.Kind = payload.Map
		l.Key, l.Elem = lower.typeLayout(t.Key, false), lower.typeLayout(t.Elem, false)
	case UnionKind:
		natural(payload.Union, 4)
		l.TypeFirst = d.TypeFirst && !tagged // a tag is followed by the length (someip.md 5.7)
		for _, m := range t.Struct.Members {
			l.Members = append(l.Members, payload.Member{Name: m.Name, Layout: lower.typeLayout(m.Type, false)})
		}
	default: // which the layout's validation refuses
	}
	if tagged && l.LengthWidth == 0 && l.Kind >= payload.String {
		l.LengthWidth = taggedLengthWidth
	}
	return l
}

// signed says that the enum needs two's complement. Enums are unsigned on
// SOME/IP (someip.md 5.1) unless a literal is negative.
func (e *Enum) signed() bool {
	for _, l := range e.Literals {
		if l.Value < 0 {
			return true
		}
	}
	return false
}
