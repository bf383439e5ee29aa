package config

import (
	"encoding"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	addrType     = reflect.TypeFor[netip.Addr]()
	addrPortType = reflect.TypeFor[netip.AddrPort]()
	prefixType   = reflect.TypeFor[netip.Prefix]()
)

// valueError says why a text is no value of a type, without its place.
type valueError struct{ message, allowed string }

func (e *valueError) Error() string { return e.message }

func badValue(message, allowed string) error { return &valueError{message, allowed} }

// isText reports whether values of t are read from the text of a scalar,
// whatever YAML takes it for.
func isText(t reflect.Type) bool {
	switch t {
	case durationType, addrType, addrPortType, prefixType:
		return true
	}
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[anyRange]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// isScalar reports whether parseScalar knows t.
func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return true
	}
	return isText(t)
}

// parseScalar sets v from text. Its errors are *valueError.
func parseScalar(text string, v reflect.Value) error {
	switch p := v.Addr().Interface().(type) {
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return badValue("is not a duration", "a number with a unit, such as 10ms, 1.5s or 2m")
		}
		*p = d
		return nil
	case *netip.Addr:
		return parseNet(text, p, netip.ParseAddr, "is not an IP address", "an IPv4 or IPv6 address, such as 10.0.0.1")
	case *netip.AddrPort:
		return parseNet(text, p, netip.ParseAddrPort, "is not an address with a port", "address:port, such as 10.0.0.1:15010")
	case *netip.Prefix:
		return parseNet(text, p, netip.ParsePrefix, "is not an address with the length of its subnet", "address/length, such as 10.0.0.1/24")
	case anyRange:
		return parseRange(text, p)
	case encoding.TextUnmarshaler:
		if err := p.UnmarshalText([]byte(text)); err != nil {
			return badValue("is not valid: "+err.Error(), "")
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Bool:
		if text != "true" && text != "false" {
			return badValue("is neither true nor false", "true, false")
		}
		v.SetBool(text == "true")
	case reflect.String:
		if e, ok := v.Interface().(enumerated); ok && !slices.Contains(e.Values(), text) {
			return badValue("is not one of the known words", strings.Join(e.Values(), ", "))
		}
		v.SetString(text)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil {
			return badValue("is not a number", "a number")
		}
		v.SetFloat(f)
	default:
		return parseInteger(text, v)
	}
	return nil
}

func parseNet[T any](text string, to *T, parse func(string) (T, error), message, allowed string) error {
	got, err := parse(text)
	if err != nil {
		return badValue(message, allowed)
	}
	*to = got
	return nil
}

// parseInteger accepts decimal and 0x digits. A leading zero, which some take
// for octal and others do not, is refused.
func parseInteger(text string, v reflect.Value) error {
	digits, base := strings.TrimPrefix(text, "-"), 10
	if hex, ok := strings.CutPrefix(digits, "0x"); ok {
		digits, base = hex, 16
	} else if len(digits) > 1 && digits[0] == '0' {
		base = 0
	}
	bits := v.Type().Bits()
	lo, hi := "0", strconv.FormatUint(1<<bits-1, 10)
	if v.CanInt() {
		lo, hi = strconv.FormatInt(-1<<(bits-1), 10), strconv.FormatUint(1<<(bits-1)-1, 10)
	}
	allowed := fmt.Sprintf("a whole number from %s to %s, in decimal or with 0x", lo, hi)
	n, err := strconv.ParseUint(digits, max(base, 2), 64)
	if base == 0 || err != nil && !errors.Is(err, strconv.ErrRange) {
		return badValue("is not a whole number", allowed)
	}
	negative := strings.HasPrefix(text, "-")
	switch {
	case err != nil:
	case v.CanUint() && (!negative || n == 0) && !v.OverflowUint(n):
		v.SetUint(n)
		return nil
	case v.CanInt() && n <= 1<<63-1 && !v.OverflowInt(sign(negative)*int64(n)):
		v.SetInt(sign(negative) * int64(n))
		return nil
	}
	return badValue("is out of range", allowed)
}

func sign(negative bool) int64 {
	if negative {
		return -1
	}
	return 1
}

// enumerated is a string type with a fixed set of words.
type enumerated interface{ Values() []string }

// formatDuration writes 10ms and 1s, without the trailing 0s of 1m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
