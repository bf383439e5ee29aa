package config

import (
	"reflect"
	"strings"
)

// describe says in words what a type accepts.
func describe(t reflect.Type) string {
	switch t {
	case durationType:
		return "a duration, such as 10ms or 1.5s"
	case addrType:
		return "an IP address, such as 10.0.0.1"
	case addrPortType:
		return "address:port, such as 10.0.0.1:15010"
	case prefixType:
		return "address/length, such as 10.0.0.1/24"
	}
	if r, ok := reflect.New(t).Interface().(anyRange); ok {
		return rangeExample(r.boundType())
	}
	if e, ok := reflect.Zero(t).Interface().(enumerated); ok {
		return strings.Join(e.Values(), ", ")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return describe(t.Elem())
	case reflect.Bool:
		return "true, false"
	case reflect.String:
		return "text"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a mapping"
	}
	return "a whole number, in decimal or with 0x"
}

// nearest returns the word that text was probably meant to be, or "".
func nearest(text string, words []string) string {
	best, bestDistance := "", len(text)/3+2
	for _, w := range words {
		if len(text) > 2 && strings.HasPrefix(w, text) {
			return w
		}
		if d := distance(text, w); d < bestDistance {
			best, bestDistance = w, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	var rows [65][65]int
	for i := range len(a) + 1 {
		rows[i][0] = i
	}
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
