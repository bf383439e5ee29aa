package registry

// A caller that gives only a path reaches the only instance of the interface or
// the default one: the first that ever registered, until it goes. The first is
// kept for ever, so that the order in which instances come back after a restart
// does not matter.

// nextDefault returns the default to keep when instances leave and others arrive.
// While the first is away and callers reach the one that remains, that one
// becomes the first when another arrives: a second instance never breaks callers.
func nextDefault(first string, members map[string]bool, leave, arrive []string) string {
	stay := make(map[string]bool, len(members))
	for name := range members {
		stay[name] = true
	}
	for _, name := range leave {
		delete(stay, name)
	}
	if stay[first] {
		return first
	}
	for _, name := range arrive {
		if name == first {
			return first
		}
	}
	if len(stay) == 1 && len(members) == 1 {
		for name := range stay {
			return name
		}
	}
	if first == "" && len(arrive) > 0 {
		return arrive[0]
	}
	return first
}

// effectiveDefault returns the instance that a call by path reaches, "" for none.
func effectiveDefault(first string, members map[string]bool) string {
	if members[first] {
		return first
	}
	if len(members) == 1 {
		for name := range members {
			return name
		}
	}
	return ""
}
