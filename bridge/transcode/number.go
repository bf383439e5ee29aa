package transcode

import (
	"math"
	"slices"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip/payload"
)

// newScalar compiles a bool, number or enum.
func newScalar(t *model.Type, l *payload.Layout) (scalar, error) {
	form, ok := forms[t.Proto]
	if !ok || !formCarries(form, l.Kind) {
		return scalar{}, mismatch(t)
	}
	s := scalar{
		load:   loads[l.LittleEndian][l.Width],
		signed: l.Kind == payload.Int || l.Kind == payload.Enum && l.Signed,
		width:  l.Width,
		bits:   l.Width * 8,
		form:   form,
	}
	if l.Bits > 0 {
		s.load, s.bits = loadBits, l.Bits
	}
	switch {
	case form == formDouble && l.Width == 4:
		s.resize = resizeToDouble
	case form == formFloat && l.Width == 8:
		s.resize = resizeToFloat
	}
	s.lo, s.hi = 0, math.MaxUint64>>(64-s.bits)
	if s.signed {
		s.lo, s.hi = math.MinInt64>>(64-s.bits), s.hi>>1
	}
	s.plain = l.Kind == payload.Float && s.resize == resizeNone
	if r, ok := ranges[t.Proto]; ok {
		s.plain = r.lo <= s.lo && s.hi <= r.hi && form != formSint32 && form != formSint64
		s.lo, s.hi = max(s.lo, r.lo), min(s.hi, r.hi)
		s.negative = r.lo < 0
	}
	if t.Kind == model.EnumKind {
		s.enum, s.literals = true, newLiterals(t.Enum)
	}
	return s, nil
}

func newLiterals(e *model.Enum) *literals {
	if len(e.Literals) == 0 {
		return nil
	}
	l := &literals{}
	for _, literal := range e.Literals {
		l.values = append(l.values, literal.Value)
	}
	slices.Sort(l.values)
	l.values = slices.Compact(l.values)
	last := len(l.values) - 1
	l.dense = l.values[last]-l.values[0] == int64(last)
	return l
}

var loads = map[bool][9]load{
	false: {1: load8, 2: load16be, 4: load32be, 8: load64be},
	true:  {1: load8, 2: load16le, 4: load32le, 8: load64le},
}

var forms = map[model.ProtoType]form{
	model.ProtoDouble:   formDouble,
	model.ProtoFloat:    formFloat,
	model.ProtoInt64:    formInt64,
	model.ProtoUint64:   formInt64,
	model.ProtoInt32:    formInt32,
	model.ProtoFixed64:  formFixed64,
	model.ProtoFixed32:  formFixed32,
	model.ProtoBool:     formBool,
	model.ProtoUint32:   formUint32,
	model.ProtoEnum:     formInt32,
	model.ProtoSfixed32: formSfixed32,
	model.ProtoSfixed64: formFixed64,
	model.ProtoSint32:   formSint32,
	model.ProtoSint64:   formSint64,
}

// formCarries says that a form of protobuf can carry a kind of SOME/IP at all.
func formCarries(f form, k payload.Kind) bool {
	switch k {
	case payload.Bool:
		return f == formBool
	case payload.Float:
		return f == formFloat || f == formDouble
	default:
		return f != formBool && f != formFloat && f != formDouble
	}
}

// ranges are the values of the integer types of protobuf.
var ranges = map[model.ProtoType]struct {
	lo int64
	hi uint64
}{
	model.ProtoInt32:    {math.MinInt32, math.MaxInt32},
	model.ProtoSint32:   {math.MinInt32, math.MaxInt32},
	model.ProtoSfixed32: {math.MinInt32, math.MaxInt32},
	model.ProtoEnum:     {math.MinInt32, math.MaxInt32},
	model.ProtoInt64:    {math.MinInt64, math.MaxInt64},
	model.ProtoSint64:   {math.MinInt64, math.MaxInt64},
	model.ProtoSfixed64: {math.MinInt64, math.MaxInt64},
	model.ProtoUint32:   {0, math.MaxUint32},
	model.ProtoFixed32:  {0, math.MaxUint32},
	model.ProtoUint64:   {0, math.MaxUint64},
	model.ProtoFixed64:  {0, math.MaxUint64},
}
