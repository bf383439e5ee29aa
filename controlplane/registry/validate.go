package registry

import (
	"encoding/hex"
	"net/netip"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"carisma.dev/gateway/controlplane/store"
	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/mesh/api/meshv1"
)

// Bounds of what a node may say. maxSocketPath is the kernel's; Envoy refuses to
// start a listener on a longer one.
const (
	maxName       = 255
	maxInstance   = 100
	maxReason     = 512
	maxSocketPath = 107
)

var (
	nodeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	// An interface has a package, so that a mesh name has dots and no cluster of
	// the bootstrap can be called like one.
	interfaceName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$`)
)

func validateNode(n store.Node) *Error {
	switch {
	case !nodeName.MatchString(n.Name):
		return newError(Invalid, "node name %q: 1 to 63 of a-z, 0-9 and - inside", n.Name)
	case !usable(n.Address):
		return newError(Invalid, "address %q of node %s is no address that other nodes reach", n.Address, n.Name) // CAR-7
	case n.Proxy == nil:
		return nil
	case !usablePort(n.Proxy.Ingress):
		return newError(Invalid, "ingress %q of node %s is no address and port", n.Proxy.Ingress, n.Name)
	case !usablePort(n.Proxy.Egress):
		return newError(Invalid, "egress %q of node %s is no address and port", n.Proxy.Egress, n.Name)
	case n.Proxy.EgressSocket != "" && !usableSocket(n.Proxy.EgressSocket):
		return newError(Invalid, "egress socket %q of node %s: an absolute path of at most %d bytes", n.Proxy.EgressSocket, n.Name, maxSocketPath)
	case !usableSocket(n.Proxy.GatewaySocket):
		return newError(Invalid, "gateway socket %q of node %s: an absolute path of at most %d bytes", n.Proxy.GatewaySocket, n.Name, maxSocketPath)
	}
	return nil
}

// usable reports whether one host can be reached at the address.
func usable(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a.Zone() == "" && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func usablePort(a netip.AddrPort) bool { return usable(a.Addr()) && a.Port() != 0 }

func usableSocket(p string) bool {
	return path.IsAbs(p) && len(p) <= maxSocketPath && printable(p)
}

// Address is where a proxy reaches an instance: a socket path or an address.
type Address struct {
	Path string
	Addr netip.AddrPort
}

func (a Address) String() string {
	if a.Path != "" {
		return "unix:" + a.Path
	}
	return a.Addr.String()
}

// parseAddress parses host:port or unix:path. The name localhost stands for
// 127.0.0.1; endpoints take no other names.
func parseAddress(s string) (Address, bool) {
	if p, ok := strings.CutPrefix(s, "unix:"); ok {
		p = strings.TrimPrefix(p, "//")
		return Address{Path: p}, usableSocket(p)
	}
	if port, ok := strings.CutPrefix(s, "localhost:"); ok {
		s = "127.0.0.1:" + port
	}
	a, err := netip.ParseAddrPort(s)
	return Address{Addr: a}, err == nil && usablePort(a)
}

// validateInstance says what is wrong with an instance, "" if nothing. CAR-45: the
// interface needs no definition, a name is enough.
func validateInstance(s *meshv1.ServiceInstance) (Address, string) {
	address, addressOK := parseAddress(s.GetAddress())
	switch {
	case len(s.GetInterface()) > maxName || !interfaceName.MatchString(s.GetInterface()):
		return address, "interface: a full name with a package"
	case len(s.GetInstance()) > maxInstance || !printable(s.GetInstance()):
		return address, "instance: at most 100 bytes, printable"
	case s.GetName() != api.MeshName(s.GetInterface(), s.GetInstance()):
		return address, "name: not the mesh name of interface and instance, " + api.MeshName(s.GetInterface(), s.GetInstance())
	case len(s.GetName()) > maxName:
		return address, "name: at most 255 bytes"
	case !addressOK:
		return address, "address: host:port with an IP address, or unix:path"
	case s.GetDescriptors() != "" && !isHash(s.GetDescriptors()):
		return address, "descriptors: a SHA-256 in hex"
	case s.GetState() != meshv1.InstanceState_INSTANCE_UP && s.GetState() != meshv1.InstanceState_INSTANCE_DOWN:
		return address, "state: up or down"
	case s.GetLeaving() < meshv1.Leaving_STAYS || s.GetLeaving() > meshv1.Leaving_LEAVING_WITHDRAWN:
		return address, "leaving: not a step that is known"
	case s.GetSince() != nil && s.GetSince().CheckValid() != nil:
		return address, "since: no time"
	}
	return address, invalidOrigin(s.GetOrigin())
}

func invalidOrigin(o *meshv1.Origin) string {
	switch o.GetProtocol() {
	case meshv1.Protocol_GRPC:
		return ""
	case meshv1.Protocol_SOMEIP, meshv1.Protocol_DBUS:
		switch {
		case o.GetNetwork() == "" || len(o.GetNetwork()) > maxName || !printable(o.GetNetwork()):
			return "origin: the network has no name"
		case o.GetServiceId() > 0xFFFF || o.GetInstanceId() > 0xFFFF || o.GetMajor() > 0xFF:
			return "origin: ids out of range"
		}
		return ""
	default:
		return "origin: no protocol"
	}
}

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) < 0
}

func isHash(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 32
}

// clip bounds a reason that a node gives.
func clip(s string) string {
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason], "")
}
