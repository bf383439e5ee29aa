package grpcadapter

import (
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"carisma.dev/gateway/bridge/opaque"
	"carisma.dev/gateway/bridge/status"
)

// choose finds the instance that a call of an interface is for: by the exact
// name in the carisma-instance metadata, else by the authority, else the
// default instance. Metadata and authority that contradict each other are an
// INVALID_ARGUMENT.
func (d *directory) choose(iface, instance, authority string) (*target, error) {
	f := d.families[iface]
	if f == nil {
		return nil, status.New(codes.Unimplemented, "no such interface: %s", iface)
	}
	named, err := f.byAuthority(d, authority)
	if err != nil {
		return nil, err
	}
	if instance == "" {
		if named != nil {
			return named, nil
		}
		if f.name == opaque.Name { // these have nothing in common but that nobody knows them
			return nil, status.New(codes.FailedPrecondition,
				"name the instance by authority or by %s; there are: %s", InstanceHeader, f.names())
		}
		return f.first, nil
	}
	t := f.instances[instance]
	if t == nil {
		return nil, status.New(codes.NotFound, "%s has no instance %q; it has: %s", iface, instance, f.names())
	}
	if named != nil && named != t {
		return nil, status.New(codes.InvalidArgument,
			"metadata carisma-instance %q contradicts authority %s", instance, named.name)
	}
	return t, nil
}

// byAuthority returns the instance that an authority names, nil where it is not
// a mesh name.
func (f *family) byAuthority(d *directory, authority string) (*target, error) {
	name := meshName(authority)
	if t := d.targets[name]; t != nil {
		if t.family != f {
			return nil, status.New(codes.Unimplemented, "%s is an instance of %s, not of %s", name, t.family.name, f.name)
		}
		return t, nil
	}
	if strings.HasSuffix(name, "."+f.lower) {
		return nil, status.New(codes.NotFound, "no instance %s; %s has: %s", name, f.name, f.names())
	}
	if isMeshName(name) {
		return nil, status.New(codes.NotFound, "no instance %s in the mesh", name)
	}
	return nil, nil
}

// unavailable says why an instance is not served here.
func (t *target) unavailable() *status.Error {
	if t.up {
		return status.Unavailable("node "+t.node+" has "+t.name+", but there is no path to it", time.Time{})
	}
	reason := t.reason
	if reason == "" {
		reason = "it went"
	}
	return status.Unavailable(reason, t.since)
}

// meshName returns the mesh name that an authority may be: in lower case,
// without a port.
func meshName(authority string) string {
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && isNumber(authority[i+1:]) {
		authority = authority[:i]
	}
	return strings.ToLower(authority)
}

// isMeshName tells whether a name has the form of a mesh name:
// <instance>.<package>.v<major>.<interface>.
func isMeshName(name string) bool {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return false
	}
	j := strings.LastIndexByte(name[:i], '.')
	if j < 0 || !strings.Contains(name[:j], ".") {
		return false
	}
	version := name[j+1 : i]
	return strings.HasPrefix(version, "v") && isNumber(version[1:])
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
