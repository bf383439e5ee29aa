package vsomeip

// merge puts what b says into a: members of objects together, items of arrays one
// after the other. A value that is in both must be the same.
func merge(a, b *node, r *reports) {
	switch {
	case a.kind != b.kind:
		r.add(b.pos, "", "%v here, %v at %v", b.kind, a.kind, a.pos)
	case a.kind == array:
		a.items = append(a.items, b.items...)
	case a.kind == object:
		for _, m := range b.members {
			if there := a.member(m.key); there != nil {
				merge(there, m.value, r)
			} else {
				a.members = append(a.members, m)
			}
		}
	case a.text != b.text:
		r.add(b.pos, "", "%q contradicts %q at %v", b.text, a.text, a.pos)
	}
}
