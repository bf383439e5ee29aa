package config

import "carisma.dev/gateway/codegen/model"

// Replicas declares instances of a network interchangeable (CAR-52): they are one
// instance of the mesh, and its calls are balanced over them, and over the replicas
// of the same name on other networks.
type Replicas struct {
	Pos model.Position `yaml:"-"`

	Interface string   `yaml:"interface" required:"true" pattern:"([A-Za-z_]\\w*\\.)+v(0|[1-9][0-9]*)\\.[A-Za-z_]\\w*" doc:"Full name of the interface." example:"cabin.climate.v1.Climate"`
	Name      string   `yaml:"name" required:"true" doc:"Instance name that stands for all of them." example:"any"`
	Instances []string `yaml:"instances" required:"true" doc:"Instance names on the network; a name in the interface file, or 0x0001 for an id without one." example:"[left, right]"`
}

// ReplicaName returns the instance name under which an instance of the network is
// one of several replicas.
func (n *Network) ReplicaName(interfaceFullName, instance string) (name string, ok bool) {
	for _, r := range n.Replicas {
		if r.Interface != interfaceFullName {
			continue
		}
		for _, i := range r.Instances {
			if i == instance {
				return r.Name, true
			}
		}
	}
	return "", false
}

// checkReplicas says what is in two sets at once.
func (n *Network) checkReplicas(v Value) {
	type key struct{ iface, name string }
	sets, members := map[key]bool{}, map[key]string{}
	for i, r := range n.Replicas {
		at := v.At("replicas").Index(i)
		if k := (key{r.Interface, r.Name}); sets[k] {
			at.Fail("each name once", "the replicas %q of %s are declared twice", r.Name, r.Interface)
		} else {
			sets[k] = true
		}
		for _, instance := range r.Instances {
			k := key{r.Interface, instance}
			if other, ok := members[k]; ok {
				at.Fail("each instance in one set", "instance %q of %s is one of %q already", instance, r.Interface, other)
			}
			members[k] = r.Name
		}
	}
}
