package scenario

import (
	"strings"

	"carisma.dev/gateway/mesh/config"
	"carisma.dev/gateway/vehicles"
)

var (
	_ config.Checker = (*Scenario)(nil)
	_ config.Checker = (*Step)(nil)
)

// actions are the keys of a step of which it has exactly one, and whether it does.
func (s *Step) actions() (all, given []string) {
	for _, a := range []struct {
		key string
		has bool
	}{
		{"wait", s.Wait != nil},
		{"call", s.Call != nil},
		{"watch", s.Watch != nil},
		{"expect", s.Expect != nil},
		{"ends", s.Ends != nil},
		{"list", s.List != nil},
		{"play", s.Play != ""},
		{"start", s.Start != ""},
		{"stop", s.Stop != ""},
		{"kill", s.Kill != ""},
		{"reboot", s.Reboot != ""},
		{"repeat", s.Repeat != nil},
		{"finish", s.Finish != nil},
		{"add_service", s.Add != nil},
		{"remove_service", s.Remove != nil},
	} {
		all = append(all, a.key)
		if a.has {
			given = append(given, a.key)
		}
	}
	return all, given
}

// CheckConfig requires exactly one action, and one answer of a call.
func (s *Step) CheckConfig(v config.Value) {
	if all, given := s.actions(); len(given) != 1 {
		v.Fail("one of "+strings.Join(all, ", "), "the step has %d actions", len(given))
	}
	if s.Call != nil && (s.Call.Response.text == "") == (s.Call.Error == nil) {
		v.At("call").Fail("response or error", "the call has both or none of them")
	}
}

// CheckConfig finds names that refer to nothing: streams and repeated calls that no
// earlier step begins, and what the vehicle does not have.
func (s *Scenario) CheckConfig(at config.Value) {
	streams, repeats := map[string]bool{}, map[string]config.Value{}
	for i := range s.Steps {
		step, here := &s.Steps[i], at.At("steps").Index(i)
		step.checkNames(here, streams, repeats)
		if s.vehicle != nil {
			step.checkVehicle(here, s.vehicle)
		}
	}
	for name, began := range repeats {
		began.Fail("a later step finish: {of: "+name+"}", "the calls %q are never ended", name)
	}
}

// checkNames keeps in streams and repeats what earlier steps have begun.
func (s *Step) checkNames(at config.Value, streams map[string]bool, repeats map[string]config.Value) {
	stream := func(of string, at config.Value) {
		if !streams[of] {
			at.Fail("the name of an earlier watch", "no stream is called %q", of)
		}
	}
	switch {
	case s.Watch != nil:
		streams[s.Watch.As] = true
	case s.Expect != nil:
		stream(s.Expect.Of, at.At("expect").At("of"))
	case s.Ends != nil:
		stream(s.Ends.Of, at.At("ends").At("of"))
	case s.Repeat != nil:
		here := at.At("repeat").At("as")
		if _, running := repeats[s.Repeat.As]; running {
			here.Fail("another name, or a step finish before", "calls %q are being made already", s.Repeat.As)
		}
		repeats[s.Repeat.As] = here
	case s.Finish != nil:
		if _, running := repeats[s.Finish.Of]; !running {
			at.At("finish").At("of").Fail("the name of an earlier repeat", "no calls %q are being made", s.Finish.Of)
		}
		delete(repeats, s.Finish.Of)
	}
}

// checkVehicle finds names that the vehicle does not have.
func (s *Step) checkVehicle(at config.Value, v *vehicles.Vehicle) {
	host := func(name string, at config.Value) {
		if hpc(v, name) == nil {
			at.At("host").Fail("the name of an HPC", "there is no HPC %q", name)
		}
	}
	switch {
	case s.Wait != nil:
		host(s.Wait.Host, at.At("wait"))
	case s.List != nil:
		host(s.List.Host, at.At("list"))
	case s.Call != nil:
		host(s.Call.Target.Host, at.At("call").At("to"))
	case s.Watch != nil:
		host(s.Watch.Target.Host, at.At("watch").At("to"))
	case s.Repeat != nil:
		host(s.Repeat.Target.Host, at.At("repeat").At("to"))
	case s.Remove != nil:
		host(s.Remove.Host, at.At("remove_service"))
	case s.Add != nil:
		s.Add.check(at.At("add_service").At("component"), v)
	}
	for key, name := range map[string]string{
		"play": s.Play, "start": s.Start, "stop": s.Stop, "kill": s.Kill, "reboot": s.Reboot,
	} {
		if name != "" && v.Component(name) == nil && !isNodeProgram(name, v) {
			at.At(key).Fail("the name of a component, or HPC/gateway or HPC/control-plane", "there is no program %q", name)
		}
	}
}

func (a *AddService) check(at config.Value, v *vehicles.Vehicle) {
	const allowed = "a component that listens on an HPC"
	c := v.Component(a.Component)
	if c == nil {
		at.Fail(allowed, "there is no component %q", a.Component)
		return
	}
	if hpc(v, c.Host) == nil || !c.Listen.IsValid() {
		at.Fail(allowed, "the component %q is no gRPC service of an HPC", a.Component)
	}
}

// hpc returns the HPC of a name, nil if there is none.
func hpc(v *vehicles.Vehicle, name string) *vehicles.Host {
	if h := v.Host(name); h != nil && h.Role != "" {
		return h
	}
	return nil
}

// isNodeProgram reports whether an HPC runs a program of that name beside its
// components.
func isNodeProgram(name string, v *vehicles.Vehicle) bool {
	host, program, _ := strings.Cut(name, "/")
	h := hpc(v, host)
	if h == nil {
		return false
	}
	return program == "gateway" || program == "control-plane" && h.Role == config.Central
}
