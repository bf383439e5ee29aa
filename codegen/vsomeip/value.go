package vsomeip

import (
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// decoder turns a tree into a Config, and collects what is wrong with it.
type decoder struct{ r reports }

func quote(s string) string { return strconv.Quote(s) }

// is reports whether a node is there and of a kind.
func (d *decoder) is(n *node, k kind) bool {
	if n == nil {
		return false
	}
	if n.kind != k {
		d.r.add(n.pos, k.String(), "%v", n.kind)
		return false
	}
	return true
}

// each calls f for the items of an array; a single value counts as one item.
func (d *decoder) each(n *node, f func(*node)) {
	switch {
	case n == nil:
	case n.kind == array:
		for _, item := range n.items {
			f(item)
		}
	default:
		f(n)
	}
}

// number reads a number between bounds, 0 if there is none.
func (d *decoder) number(n *node, least, most uint64) uint64 {
	if !d.is(n, scalar) {
		return 0
	}
	text, base := strings.TrimSpace(n.text), 10
	if rest, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		text, base = rest, 16
	}
	v, err := strconv.ParseUint(text, base, 64)
	if err != nil || v < least || v > most {
		d.r.add(n.pos, strconv.FormatUint(least, 10)+" to "+strconv.FormatUint(most, 10), "%s is no such number", quote(n.text))
		return 0
	}
	return v
}

func (d *decoder) id(n *node) uint16   { return uint16(d.number(n, 0, 0xFFFF)) }
func (d *decoder) port(n *node) uint16 { return uint16(d.number(n, 1, 0xFFFF)) }

const maxBytes = 1<<32 - 1

func (d *decoder) size(n *node) uint32 { return uint32(d.number(n, 0, maxBytes)) }

// millis reads a time in milliseconds.
func (d *decoder) millis(n *node) time.Duration {
	return time.Duration(d.number(n, 0, maxBytes)) * time.Millisecond
}

// boolean reads true or false, def if there is none.
func (d *decoder) boolean(n *node, def bool) bool {
	if n == nil {
		return def
	}
	if !d.is(n, scalar) {
		return def
	}
	switch n.text {
	case "true":
		return true
	case "false":
		return false
	}
	d.r.add(n.pos, "true, false", "%s is neither", quote(n.text))
	return def
}

func (d *decoder) text(n *node) string {
	if !d.is(n, scalar) {
		return ""
	}
	return n.text
}

// one reads one of some words.
func (d *decoder) one(n *node, words ...string) string {
	s := d.text(n)
	for _, w := range words {
		if s == w {
			return s
		}
	}
	if n != nil && n.kind == scalar {
		d.r.add(n.pos, strings.Join(words, ", "), "%s is none of them", quote(s))
	}
	return ""
}

// addr reads an IP address; the zero Addr if there is none.
func (d *decoder) addr(n *node) netip.Addr {
	if !d.is(n, scalar) {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(n.text)
	if err != nil {
		d.r.add(n.pos, "an IP address", "%s is none", quote(n.text))
	}
	return a
}

// peer reads an IP address; "local" stands for none.
func (d *decoder) peer(n *node) netip.Addr {
	if n != nil && n.text == "local" {
		return netip.Addr{}
	}
	return d.addr(n)
}

// bits reads a netmask, or the length of a prefix.
func (d *decoder) bits(n *node) int {
	if !d.is(n, scalar) {
		return 0
	}
	if v, err := strconv.Atoi(n.text); err == nil && v >= 0 && v <= 128 {
		return v
	}
	a, err := netip.ParseAddr(n.text)
	if err == nil {
		length, ended := 0, false
		for _, b := range a.AsSlice() {
			for bit := byte(0x80); bit != 0; bit >>= 1 {
				switch {
				case b&bit == 0:
					ended = true
				case ended:
					d.r.add(n.pos, "", "netmask %s has a hole", n.text)
					return 0
				default:
					length++
				}
			}
		}
		return length
	}
	d.r.add(n.pos, "255.255.255.0, 24", "%s is no netmask", quote(n.text))
	return 0
}
