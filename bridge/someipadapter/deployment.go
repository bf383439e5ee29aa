package someipadapter

import (
	"fmt"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/tp"
)

// deploy tells the network how the messages of an instance travel, if its interface
// says so. It comes before the instance is offered or has a client.
func (a *Adapter) deploy(key someip.InstanceKey, iface *model.Interface) error {
	d, ok := deployment(key, iface)
	if !ok {
		return nil
	}
	if err := a.network.Deploy(d); err != nil {
		return fmt.Errorf("someipadapter: %w", err)
	}
	return nil
}

// deployment is that of an instance, false if its interface says nothing of it.
func deployment(key someip.InstanceKey, iface *model.Interface) (runtime.Deployment, bool) {
	d := runtime.Deployment{
		Instance: key,
		Requests: map[uint16]runtime.MessageConfig{}, Responses: map[uint16]runtime.MessageConfig{}, Events: map[uint16]runtime.MessageConfig{},
	}
	set := func(configs map[uint16]runtime.MessageConfig, id uint16, m *model.SOMEIPMessage) {
		if m != nil {
			configs[id] = messageConfig(m)
		}
	}
	for _, m := range iface.AllMethods() {
		if e := m.SOMEIP; e != nil {
			set(d.Requests, e.ID, e.Request)
			set(d.Responses, e.ID, e.Response)
		}
	}
	for _, ev := range iface.AllEvents() {
		if e := ev.SOMEIP; e != nil {
			set(d.Events, e.ID, e.Event)
		}
	}
	return d, len(d.Requests)+len(d.Responses)+len(d.Events) > 0
}

func messageConfig(m *model.SOMEIPMessage) runtime.MessageConfig {
	c := runtime.MessageConfig{Debounce: m.Debounce, Retention: m.Retention}
	if m.TP != nil {
		c.TP = &tp.Rule{SegmentLength: m.TP.SegmentLength, Separation: m.TP.Separation}
		c.MaxPayload = m.TP.MaxPayload
	}
	if m.E2E != nil {
		c.E2E = &runtime.E2EConfig{Config: protection(m.E2E), Vsomeip: m.E2E.Vsomeip, Drop: !m.E2E.DeliverFailed}
	}
	return c
}

var dataIDModes = map[model.E2EDataIDMode]e2e.DataIDMode{
	model.E2EBoth: e2e.Both, model.E2EAlt: e2e.Alt, model.E2ELow: e2e.Low, model.E2ENibble: e2e.Nibble,
}

func protection(m *model.SOMEIPE2E) e2e.Config {
	return e2e.Config{
		Profile: e2e.Profile(m.Profile), DataID: m.DataID, DataIDMode: dataIDModes[m.DataIDMode], DataIDList: m.DataIDList,
		Offset: m.Offset, MinLength: m.MinLength, MaxLength: m.MaxLength, MaxDelta: m.MaxDelta, Strict: m.Strict,
	}
}
