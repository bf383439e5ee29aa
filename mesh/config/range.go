package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Bound is what a Range may be of.
type Bound interface {
	uint8 | uint16 | uint32 | time.Duration
}

// Range is an inclusive range. In a file it is two bounds with a hyphen, such as
// 0x1100-0x11ff or 10ms-100ms, or one value.
type Range[T Bound] struct {
	Min, Max T
}

// Contains reports whether v lies in the range.
func (r Range[T]) Contains(v T) bool { return r.Min <= v && v <= r.Max }

// Overlaps reports whether the ranges have a value in common.
func (r Range[T]) Overlaps(o Range[T]) bool { return r.Min <= o.Max && o.Min <= r.Max }

// IsZero reports whether the range was left out.
func (r Range[T]) IsZero() bool { return r == Range[T]{} }

func (r Range[T]) String() string {
	if r.Min == r.Max {
		return formatBound(r.Min)
	}
	return formatBound(r.Min) + "-" + formatBound(r.Max)
}

// MarshalText implements encoding.TextMarshaler.
func (r Range[T]) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Range[T]) UnmarshalText(text []byte) error { return parseRange(string(text), r) }

func formatBound(v any) string {
	if d, ok := v.(time.Duration); ok {
		return formatDuration(d)
	}
	return fmt.Sprint(v)
}

// boundType is how the decoder, which only has a reflect.Value, meets a Range.
func (r *Range[T]) boundType() reflect.Type { return reflect.TypeFor[T]() }

func (r *Range[T]) bounds() (lo, hi reflect.Value) {
	v := reflect.ValueOf(r).Elem()
	return v.Field(0), v.Field(1)
}

type anyRange interface {
	boundType() reflect.Type
	bounds() (lo, hi reflect.Value)
}

func parseRange(text string, r anyRange) error {
	lo, hi := r.bounds()
	first, last, two := strings.Cut(text, "-")
	if !two {
		last = first
	}
	first, last = strings.TrimSpace(first), strings.TrimSpace(last)
	if parseScalar(first, lo) != nil || parseScalar(last, hi) != nil {
		return badValue("is not a range", rangeExample(r.boundType()))
	}
	if compareScalar(lo, hi) > 0 {
		return badValue("is a range that ends before it begins", rangeExample(r.boundType()))
	}
	return nil
}

func rangeExample(bound reflect.Type) string {
	if bound == durationType {
		return "two durations with a hyphen, such as 10ms-100ms, or one duration"
	}
	return "two numbers with a hyphen, such as 0x1100-0x11ff or 30500-30599, or one number"
}

// compareScalar compares two values of the same integer type.
func compareScalar(a, b reflect.Value) int {
	if a.CanUint() {
		return cmp.Compare(a.Uint(), b.Uint())
	}
	return cmp.Compare(a.Int(), b.Int())
}
