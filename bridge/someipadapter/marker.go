package someipadapter

import "strings"

// marker is the key of the configuration item with which a gateway marks what it
// exposes, followed by the name of its node: what is exposed on a network is not
// imported from it, by this gateway or another.
const marker = "carisma="

// markedBy returns the node whose gateway exposes what is offered so, "" for a
// native service.
func markedBy(configuration []string) (node string) {
	for _, item := range configuration {
		if node, ok := strings.CutPrefix(item, marker); ok {
			return node
		}
	}
	return ""
}

// stands decides between two gateways that begin to expose the same thing on one
// network at the same time: of both nodes the first by name goes on.
func (a *Adapter) stands(configuration []string) bool {
	return markedBy(configuration) > a.cfg.Node
}
