package config

import "carisma.dev/gateway/codegen/model"

// Expose chooses the services of the mesh that are offered in a network.
type Expose struct {
	Services []ExposedService `yaml:"services" doc:"The gRPC services to offer; an empty list offers none. Left out beside someip, every one that has SOME/IP ids."`
	SOMEIP   []ExposedSOMEIP  `yaml:"someip" doc:"SOME/IP services of other networks to offer, whether their interface is known or not."`
}

// ExposedService is an interface, or one instance of it.
type ExposedService struct {
	Interface string `yaml:"interface" required:"true" pattern:"([A-Za-z_]\\w*\\.)+v(0|[1-9][0-9]*)\\.[A-Za-z_]\\w*" doc:"Full name of the interface." example:"cabin.trip.v1.TripComputer"`
	Instance  string `yaml:"instance" doc:"Name of the instance; without it, every one."`
}

// ExposedSOMEIP is a SOME/IP service of another network, or one instance of it.
type ExposedSOMEIP struct {
	Pos model.Position `yaml:"-"`

	Network  string    `yaml:"network" required:"true" pattern:"[a-z0-9]([a-z0-9-]*[a-z0-9])?" doc:"Network that it comes from." example:"rear-ecu"`
	Service  uint16    `yaml:"service" required:"true" min:"1" max:"0xfffe" doc:"Service id there." example:"0x6001"`
	Instance uint16    `yaml:"instance" min:"1" max:"0xfffe" doc:"Instance id there; without it, every one." example:"0x0001"`
	As       SOMEIPIDs `yaml:"as" doc:"Ids here, where they differ."`
}

// SOMEIPIDs are ids of an instance; 0 stands for the id that it has already.
type SOMEIPIDs struct {
	Service  uint16 `yaml:"service" min:"1" max:"0xfffe" doc:"Service id." example:"0x7001"`
	Instance uint16 `yaml:"instance" min:"1" max:"0xfffe" doc:"Instance id." example:"0x0002"`
}

// Allows reports whether the instance of a gRPC service may be offered. A nil
// Expose allows all.
func (e *Expose) Allows(interfaceFullName, instance string) bool {
	if e == nil || e.Services == nil && e.SOMEIP != nil {
		return true
	}
	for _, s := range e.Services {
		if s.Interface == interfaceFullName && (s.Instance == "" || s.Instance == instance) {
			return true
		}
	}
	return false
}

// IDs returns the ids under which a SOME/IP instance of another network is offered,
// by the first rule for it. ok is false if there is none.
func (e *Expose) IDs(network string, service, instance uint16) (ids SOMEIPIDs, ok bool) {
	if e == nil {
		return ids, false
	}
	for i := range e.SOMEIP {
		r := &e.SOMEIP[i]
		if r.Network == network && r.Service == service && (r.Instance == 0 || r.Instance == instance) {
			return r.ids(instance), true
		}
	}
	return ids, false
}

func (r *ExposedSOMEIP) ids(instance uint16) SOMEIPIDs {
	ids := SOMEIPIDs{r.Service, instance}
	if r.As.Service != 0 {
		ids.Service = r.As.Service
	}
	if r.As.Instance != 0 {
		ids.Instance = r.As.Instance
	}
	return ids
}

var (
	_ Checker = (*Expose)(nil)
	_ Checker = (*ExposedSOMEIP)(nil)
)

// CheckConfig finds rules that give two instances the same ids.
func (e *Expose) CheckConfig(v Value) {
	taken := map[SOMEIPIDs]int{}
	for i := range e.SOMEIP {
		r := &e.SOMEIP[i]
		if r.Service == 0 || r.Instance == 0 {
			continue
		}
		ids := r.ids(r.Instance)
		if line, ok := taken[ids]; ok {
			v.At("someip").Index(i).Fail("ids of their own for each", "0x%04x.0x%04x is also what the rule on line %d gives", ids.Service, ids.Instance, line)
			continue
		}
		taken[ids] = r.Pos.Line
	}
}

// CheckConfig checks the ids of a rule against each other.
func (r *ExposedSOMEIP) CheckConfig(v Value) {
	if r.Instance == 0 && r.As.Instance != 0 {
		v.At("as").At("instance").Fail("instance beside network and service", "every instance would become 0x%04x", r.As.Instance)
	}
}

// checkExpose refuses rules by which a network would offer its own services.
func (n *Network) checkExpose(v Value) {
	if n.Expose == nil || n.Name == "" {
		return
	}
	for i := range n.Expose.SOMEIP {
		if r := &n.Expose.SOMEIP[i]; r.Network == n.Name {
			v.Index(i).At("network").Fail("another network", "what comes from network %s is not offered there again", n.Name)
		}
	}
}
