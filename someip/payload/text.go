package payload

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Encoding is how a string is carried.
type Encoding uint8

// The string encodings.
const (
	UTF8 Encoding = iota
	UTF16BE
	UTF16LE
)

// Text is how a string is carried. BOM and Terminator say what a writer adds; a
// reader takes strings with and without them unless it is strict.
type Text struct {
	Encoding   Encoding
	BOM        bool // a byte order mark first
	Terminator bool // a NUL last
}

// PlainText is UTF-8 with byte order mark and terminator, the default of SOME/IP.
var PlainText = Text{Encoding: UTF8, BOM: true, Terminator: true}

var bom8 = []byte{0xEF, 0xBB, 0xBF}

// swapped is U+FFFE, no character: the byte order mark with its bytes exchanged.
var swapped = []byte("\uFFFE")

// unit is the number of bytes of the terminator and of a code unit.
func (t Text) unit() int {
	if t.Encoding == UTF8 {
		return 1
	}
	return 2
}

// overhead is the number of bytes of mark and terminator.
func (t Text) overhead() int {
	n := 0
	if t.BOM {
		n += 2
		if t.Encoding == UTF8 {
			n = 3
		}
	}
	if t.Terminator {
		n += t.unit()
	}
	return n
}

// decodeMode is how a reader treats what belongs to a string beside its text.
type decodeMode struct {
	fixed  bool // cut at the first NUL instead of stripping one terminator
	strict bool // mark and terminator exactly as configured
}

// AppendText appends the text in the bytes of a dynamic string as UTF-8: without
// byte order mark and without one terminator, whether configured or not. A mark
// wins over the configured order of UTF-16, and an odd last byte is ignored.
// Text that is not valid or has an inner NUL is an error (wrapping ErrText) with
// its offset in raw.
func (t Text) AppendText(dst, raw []byte) ([]byte, error) {
	return t.decode(dst, raw, decodeMode{})
}

// AppendFixedText is AppendText for a string of fixed size, which ends at its
// first NUL.
func (t Text) AppendFixedText(dst, raw []byte) ([]byte, error) {
	return t.decode(dst, raw, decodeMode{fixed: true})
}

func (t Text) decode(dst, raw []byte, mode decodeMode) ([]byte, error) {
	if t.Encoding != UTF8 {
		return t.decode16(dst, raw, mode)
	}
	text, err := t.trim8(raw, mode)
	if err != nil {
		return dst, err
	}
	return append(dst, text...), nil
}

// trim8 returns the valid text within the bytes of a UTF-8 string.
func (t Text) trim8(raw []byte, mode decodeMode) ([]byte, error) {
	start, end := 0, len(raw)
	terminated := false
	if mode.fixed {
		if i := bytes.IndexByte(raw, 0); i >= 0 {
			end, terminated = i, true
		}
	} else if end > 0 && raw[end-1] == 0 {
		if terminated = true; t.Terminator || !mode.strict {
			end--
		}
	}
	if mode.strict && t.Terminator && !terminated {
		return nil, fail(end, ErrText, "no terminator")
	}
	marked := bytes.HasPrefix(raw[:end], bom8)
	if mode.strict && t.BOM && !marked {
		return nil, fail(0, ErrText, "no byte order mark")
	}
	if marked && (t.BOM || !mode.strict) {
		start = len(bom8)
	}
	text := raw[start:end]
	if err := checkText(text); err != nil {
		return nil, shift(err, start)
	}
	return text, nil
}

// checkText reports what keeps bytes from being text that both sides can hold.
func checkText(text []byte) error {
	if bad := invalidUTF8(text); bad >= 0 {
		return fail(bad, ErrText, "not UTF-8")
	}
	if i := bytes.IndexByte(text, 0); i >= 0 {
		return fail(i, ErrText, "inner NUL")
	}
	return nil
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func (t Text) decode16(dst, raw []byte, mode decodeMode) ([]byte, error) {
	text := raw[:len(raw)&^1]
	if mode.strict && len(text) != len(raw) {
		return dst, fail(len(text), ErrText, "odd number of bytes")
	}
	little := t.Encoding == UTF16LE
	marked := false
	if len(text) >= 2 {
		switch {
		case text[0] == 0xFE && text[1] == 0xFF:
			marked, little = true, false
		case text[0] == 0xFF && text[1] == 0xFE:
			marked, little = true, true
		}
	}
	if mode.strict && t.BOM && !marked {
		return dst, fail(0, ErrText, "no byte order mark")
	}
	start := 0
	if marked {
		start = 2
	}
	end := len(text)
	terminated := end-start >= 2 && text[end-1] == 0 && text[end-2] == 0
	if terminated && !mode.fixed && (t.Terminator || !mode.strict) {
		end -= 2
	}
	for i := start; i < end; {
		r, n := decodeRune16(text[i:end], little)
		switch {
		case n == 0:
			return dst, fail(i, ErrText, "lone surrogate")
		case r == 0 && mode.fixed:
			return dst, nil
		case r == 0:
			return dst, fail(i, ErrText, "inner NUL")
		}
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	if mode.strict && t.Terminator && !terminated {
		return dst, fail(len(raw), ErrText, "no terminator")
	}
	return dst, nil
}

// decodeRune16 returns the first character and its bytes, 0 if it is not valid.
func decodeRune16(b []byte, little bool) (rune, int) {
	unit := func(i int) rune {
		if little {
			return rune(b[i]) | rune(b[i+1])<<8
		}
		return rune(b[i])<<8 | rune(b[i+1])
	}
	r := unit(0)
	if !utf16.IsSurrogate(r) {
		return r, 2
	}
	if len(b) < 4 {
		return 0, 0
	}
	if r = utf16.DecodeRune(r, unit(2)); r == utf8.RuneError {
		return 0, 0
	}
	return r, 4
}

// Append appends the bytes of a string with byte order mark and terminator as
// configured. Text that is not UTF-8 or has a NUL is an error (wrapping
// ErrText) with its offset in the text, and so is text that begins with U+FFFE where
// UTF-16 has no mark: a reader would take it for one, of the other byte order.
func (t Text) Append(dst, text []byte) ([]byte, error) {
	if err := checkText(text); err != nil {
		return dst, err
	}
	if t.Encoding == UTF8 {
		if t.BOM {
			dst = append(dst, bom8...)
		}
		dst = append(dst, text...)
		if t.Terminator {
			dst = append(dst, 0)
		}
		return dst, nil
	}
	little := t.Encoding == UTF16LE
	if !t.BOM && bytes.HasPrefix(text, swapped) {
		return dst, fail(0, ErrText, "begins like a byte order mark of the other order")
	}
	if t.BOM {
		dst = appendUnit(dst, 0xFEFF, little)
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		i += n
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			dst = appendUnit(appendUnit(dst, high, little), low, little)
		} else {
			dst = appendUnit(dst, r, little)
		}
	}
	if t.Terminator {
		dst = append(dst, 0, 0)
	}
	return dst, nil
}

func appendUnit(dst []byte, u rune, little bool) []byte {
	if little {
		return append(dst, byte(u), byte(u>>8))
	}
	return append(dst, byte(u>>8), byte(u))
}
