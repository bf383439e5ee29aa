package api

import (
	"fmt"
	"strings"
)

// MeshName returns the mesh name of an instance of an interface, as model.MeshName
// does for whoever has a model: the control plane needs none (CAR-45).
func MeshName(interfaceFullName, instance string) string {
	if instance == "" {
		instance = "default"
	}
	var b strings.Builder
	for _, c := range []byte(strings.ToLower(instance)) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	b.WriteByte('.')
	b.WriteString(strings.ToLower(interfaceFullName))
	return b.String()
}
