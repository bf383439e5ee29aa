package vsomeip

import (
	"slices"
	"strconv"
	"strings"
)

// The place of a key is its keys from the top, joined by dots, with [] behind a key
// whose value is an array: "services[].events[].event". A key that is an id, as
// below debounce-times, is "*". Services of servicegroups are services.

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

var table = func() map[string]*Parameter {
	t := make(map[string]*Parameter, len(Parameters))
	for i := range Parameters {
		t[Parameters[i].Key] = &Parameters[i]
	}
	return t
}()

// known returns the place of a key as the table has it, "" if it has not.
func known(path string) string {
	path = strings.Replace(path, "servicegroups[].services", "services", 1)
	if _, ok := table[path]; ok || containers[path] {
		return path
	}
	if i := strings.LastIndexByte(path, '.'); i >= 0 && isID(path[i+1:]) {
		if path = path[:i] + ".*"; containers[path] {
			return path
		}
	}
	return ""
}

func isID(key string) bool {
	_, err := strconv.ParseUint(key, 0, 16)
	return err == nil
}

// containers are the places that others in the table are below.
var containers = func() map[string]bool {
	c := map[string]bool{}
	for _, p := range Parameters {
		for path := p.Key; ; {
			i := strings.LastIndexByte(path, '.')
			if i < 0 {
				break
			}
			path = path[:i]
			c[path], c[strings.TrimSuffix(path, "[]")] = true, true
		}
	}
	return c
}()

// opaque says that what is below a key is nobody's business.
func opaque(key string) bool {
	p := table[key]
	return p != nil && p.Setting == "" && !containers[key]
}

// siblings are the keys that may be at a place.
func siblings(path string) []string {
	prefix := ""
	if path != "" {
		prefix = path + "."
	}
	var all []string
	for _, p := range Parameters {
		rest, ok := strings.CutPrefix(p.Key, prefix)
		if !ok {
			continue
		}
		rest, _, _ = strings.Cut(rest, ".")
		if rest = strings.TrimSuffix(rest, "[]"); !slices.Contains(all, rest) {
			all = append(all, rest)
		}
	}
	slices.Sort(all)
	return all
}
