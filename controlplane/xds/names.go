package xds

import "strings"

// Names of what there is once in each proxy. None of them is a mesh name, so no
// caller's authority selects one.
const (
	ingressName = "ingress"
	egressName  = "egress"
	// gatewayCluster is the gateway of the node itself. It is the last resort of
	// every service, so that callers of one that is gone are told why.
	gatewayCluster = "gateway"
)

// A mesh service NAME has these clusters. They never change; endpoints move
// between them.
func localCluster(name string) string   { return name + "/local" }
func remoteCluster(name string) string  { return name + "/remote" }
func ingressCluster(name string) string { return name + "/in" }

// serviceHeader tells the ingress of another node which service the egress chose,
// whatever the caller chose it by.
const serviceHeader = "carisma-service"

// meshName matches the names of services whose interface has a version, and no
// host name or address that a caller may have dialled.
const meshName = `[a-z0-9_-]+(\.[a-z_][a-z0-9_]*)*\.v[0-9]+\.[a-z_][a-z0-9_]*`

// versioned reports whether an interface has a version, so that meshName matches
// the names of its services.
func versioned(iface string) bool {
	parts := strings.Split(strings.ToLower(iface), ".")
	if len(parts) < 2 {
		return false
	}
	digits, ok := strings.CutPrefix(parts[len(parts)-2], "v")
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}
