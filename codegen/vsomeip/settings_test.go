package vsomeip_test

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/vsomeip"
	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/sd"
	"carisma.dev/gateway/someip/someiptest"
	"carisma.dev/gateway/someip/tp"
)

// This is the table of parameters as a program: what a configuration sets is set
// for the runtime, which takes it.

// network sets what a configuration says of the network.
func network(c *vsomeip.Config, n runtime.NetworkConfig) runtime.NetworkConfig {
	if c.Unicast.IsValid() {
		n.Address = netip.PrefixFrom(c.Unicast, 24)
		if c.Netmask != 0 {
			n.Address = netip.PrefixFrom(c.Unicast, c.Netmask)
		}
	}
	n.Interface = c.Device
	if c.Diagnosis != 0 {
		if first := c.Diagnosis << 8 & c.DiagnosisMask; first != 0 {
			n.ClientIDs = runtime.Range{First: first, Last: first | min(^c.DiagnosisMask, 0xFFFE&^first)}
		}
	}
	s := &c.Discovery
	set := func(key string, to *time.Duration, v, none time.Duration) {
		if s.Set[key] {
			if *to = v; v == 0 {
				*to = none
			}
		}
	}
	if s.Group.IsValid() {
		n.SD.Group = s.Group
	}
	if s.Port != 0 {
		n.SD.Port = s.Port
	}
	set("initial_delay_min", &n.SD.InitialDelayMin, s.InitialDelayMin, 0)
	set("initial_delay_max", &n.SD.InitialDelayMax, s.InitialDelayMax, -1)
	set("repetitions_base_delay", &n.SD.RepetitionsBaseDelay, s.RepetitionsBaseDelay, time.Millisecond)
	set("cyclic_offer_delay", &n.SD.CyclicOfferDelay, s.CyclicOfferDelay, time.Second)
	set("request_response_delay", &n.SD.RequestResponseMin, s.RequestResponseDelay, 0)
	set("request_response_delay", &n.SD.RequestResponseMax, s.RequestResponseDelay, -1)
	set("ttl", &n.SD.TTL, time.Duration(s.TTL)*time.Second, 0)
	set("ttl", &n.SD.SubscribeTTL, time.Duration(s.TTL)*time.Second, 0)
	if s.Set["repetitions_max"] {
		if n.SD.RepetitionsMax = int(s.RepetitionsMax); s.RepetitionsMax == 0 {
			n.SD.RepetitionsMax = -1
		}
	}
	for from, to := range map[*[]vsomeip.TTLFactor]*[]sd.TTLFactor{
		&s.OfferTTLFactors: &n.SD.OfferTTLFactors, &s.SubscriptionTTLFactors: &n.SD.SubscriptionTTLFactors,
	} {
		for _, f := range *from {
			*to = append(*to, sd.TTLFactor{Service: f.Service, Instance: f.Instance, Factor: int(f.Factor)})
		}
	}
	n.SD.MaxSubscribers = int(s.MaxRemoteSubscribers)
	n.NoSessions = slices.ContainsFunc(c.Applications, func(a vsomeip.Application) bool { return !a.Sessions })
	for _, client := range c.Clients {
		if client.UDPPorts != (vsomeip.Range{}) {
			n.ClientPorts = runtime.Range(client.UDPPorts)
		}
	}
	if c.MaxPayloadReliable != 0 {
		n.MaxMessage = someip.HeaderSize + int(c.MaxPayloadReliable)
	}
	n.ReceiveBuffer, n.DrainTimeout = int(c.UDPReceiveBuffer), c.Shutdown
	n.MagicCookies = slices.ContainsFunc(c.Services, func(s vsomeip.Service) bool { return s.MagicCookies })
	return n
}

const major = 1 // vsomeip has it in its programs, not in its configurations

// service sets what a configuration says of an instance that it offers. Events
// whose id is that of a method (ID-2) are left out, vsomeip takes them.
func service(c *vsomeip.Config, s vsomeip.Service) (runtime.ServiceConfig, runtime.Deployment) {
	cfg := runtime.ServiceConfig{
		Service: s.Service, Instance: s.Instance, Major: major, UDPPort: s.UDP, TCPPort: s.TCP, Unannounced: !c.Discovery.Enable,
	}
	for _, e := range s.Events {
		if !someip.IsEvent(e.ID) {
			continue
		}
		event := runtime.EventConfig{ID: e.ID, Field: e.Field, Reliable: e.Reliable || s.UDP == 0}
		for _, g := range s.Eventgroups {
			if slices.Contains(g.Events, e.ID) {
				event.Eventgroups = append(event.Eventgroups, g.ID)
			}
		}
		cfg.Events = append(cfg.Events, event)
		for _, g := range s.Eventgroups {
			group := runtime.EventgroupConfig{ID: g.ID, Multicast: g.Multicast, Threshold: int(g.Threshold)}
			if !group.Multicast.IsValid() {
				group.Multicast = s.Multicast
			}
			seen := slices.ContainsFunc(cfg.Eventgroups, func(o runtime.EventgroupConfig) bool { return o.ID == g.ID })
			if group.Multicast.Port() != 0 && !event.Reliable && slices.Contains(g.Events, e.ID) && !seen {
				cfg.Eventgroups = append(cfg.Eventgroups, group)
			}
		}
	}
	return cfg, deployment(c, s)
}

// static sets an instance of a peer that is configured in place of discovery.
func static(s vsomeip.Service) runtime.StaticInstance {
	one := runtime.StaticInstance{Key: runtime.InstanceKey{Service: s.Service, Instance: s.Instance, Major: major}}
	if s.UDP != 0 {
		one.Endpoints.UDP = netip.AddrPortFrom(s.Unicast, s.UDP)
	}
	if s.TCP != 0 {
		one.Endpoints.TCP = netip.AddrPortFrom(s.Unicast, s.TCP)
	}
	return one
}

func deployment(c *vsomeip.Config, s vsomeip.Service) runtime.Deployment {
	d := runtime.Deployment{
		Instance: runtime.InstanceKey{Service: s.Service, Instance: s.Instance, Major: major},
		Requests: map[uint16]runtime.MessageConfig{}, Responses: map[uint16]runtime.MessageConfig{}, Events: map[uint16]runtime.MessageConfig{},
	}
	change := func(in map[uint16]runtime.MessageConfig, id uint16, f func(*runtime.MessageConfig)) {
		m := in[id]
		f(&m)
		in[id] = m
	}
	sent := func(id uint16) map[uint16]runtime.MessageConfig {
		if someip.IsEvent(id) {
			return d.Events
		}
		return d.Responses
	}
	rule := func(t vsomeip.Segmented) func(*runtime.MessageConfig) {
		return func(m *runtime.MessageConfig) {
			m.TP = &tp.Rule{SegmentLength: int(t.MaxSegment), Separation: t.Separation}
			m.MaxPayload = int(c.MaxPayloadUnreliable)
		}
	}
	for _, t := range s.ServiceToClient {
		change(sent(t.Method), t.Method, rule(t))
	}
	for _, t := range s.ClientToService {
		change(d.Requests, t.Method, rule(t))
	}
	wait := func(t vsomeip.Timings) func(*runtime.MessageConfig) {
		return func(m *runtime.MessageConfig) { m.Debounce, m.Retention = t.Debounce, t.Retention }
	}
	for id, t := range s.Requests {
		change(d.Requests, id, wait(t))
	}
	for id, t := range s.Responses {
		change(sent(id), id, wait(t))
	}
	for _, p := range c.Protected {
		profile := map[string]e2e.Profile{"P01": e2e.P01, "CRC8": e2e.P01, "P04": e2e.P04, "P05": e2e.P05, "P07": e2e.P07}[p.Profile]
		if p.Service != s.Service || !c.E2E || profile == 0 {
			continue
		}
		cfg := runtime.E2EConfig{Config: e2e.Config{Profile: profile, DataID: p.DataID, MaxDelta: p.MaxDelta}, Vsomeip: s.Instance <= 0xFF}
		if profile != e2e.P01 && p.CRCOffset > 64 {
			cfg.Offset = int(p.CRCOffset-64) / 8
		}
		change(sent(p.Event), p.Event, func(m *runtime.MessageConfig) { m.E2E = &cfg })
	}
	return d
}

// filters sets which events of an instance are let through.
func filters(c *vsomeip.Config, service, instance uint16) map[uint16]runtime.FilterConfig {
	all := map[uint16]runtime.FilterConfig{}
	for _, f := range c.Filters {
		for _, e := range f.Events {
			if f.Service == service && f.Instance == instance {
				all[e.Event] = runtime.FilterConfig{
					OnChange: e.OnChange, Ignore: e.Ignore, Interval: e.Interval, ChangeResetsInterval: e.ChangeResetsInterval,
				}
			}
		}
	}
	return all
}

// Every configuration of the corpus can be set for the runtime: what it says of the
// network is valid, and a host with it, moved to a loopback address, deploys and
// offers its services.
func TestSettings(t *testing.T) {
	offered, peers, refused := 0, 0, 0
	corpus(t, func(path, name string) {
		c, err := vsomeip.Load(path)
		if err != nil {
			return // TestCorpus
		}
		d := someiptest.NewDomain(t)
		here := d.Config(1)
		there := network(c, here)
		if !there.SD.Group.Is4() || there.Address.Addr().Is4() {
			require.NoError(t, there.Validate(), name)
		}
		moved := there
		moved.Address, moved.Interface, moved.SD.Group, moved.SD.Port = here.Address, here.Interface, here.SD.Group, here.SD.Port
		stack, err := runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{moved}})
		require.NoError(t, err, name)
		defer stack.Close()
		n := stack.Network(moved.Name)
		for _, s := range c.Services {
			if s.Protocol != "" || s.TCP == 0 && s.UDP == 0 {
				continue
			}
			if s.Unicast.IsValid() && s.Unicast != c.Unicast {
				_, err := n.AddStatic(static(s))
				require.NoError(t, err, "%s: %v", name, s.Pos)
				peers++
				continue
			}
			cfg, deploy := service(c, s)
			require.NoError(t, n.Deploy(deploy), "%s: %v", name, s.Pos)
			_, err := n.Offer(cfg)
			if errors.Is(err, runtime.ErrInUse) {
				refused++ // two instances of a service at one port: nobody could tell them apart (UDP-5)
				continue
			}
			require.NoError(t, err, "%s: %v", name, s.Pos)
			offered++
		}
	})
	t.Logf("%d services offered, %d of peers, %d refused", offered, peers, refused)
	require.Positive(t, peers)
	require.Greater(t, offered, 10*refused)
}

// What the full configuration sets arrives.
func TestSettingsOfFull(t *testing.T) {
	c, err := vsomeip.Parse("full.json", []byte(full))
	require.NoError(t, err)
	n := network(c, runtime.NetworkConfig{Name: "one"})
	require.NoError(t, n.Validate())
	require.Equal(t, runtime.NetworkConfig{
		Name: "one", Address: netip.MustParsePrefix("10.0.2.15/20"), Interface: "eth0",
		SD: runtime.SDConfig{
			Group: netip.MustParseAddr("224.212.244.223"), Port: 30666,
			InitialDelayMin: 1234 * time.Millisecond, InitialDelayMax: 2345 * time.Millisecond,
			RepetitionsBaseDelay: 4242 * time.Millisecond, RepetitionsMax: 4, CyclicOfferDelay: 2132 * time.Millisecond,
			TTL: 13 * time.Second, SubscribeTTL: 13 * time.Second,
			RequestResponseMin: 1111 * time.Millisecond, RequestResponseMax: 1111 * time.Millisecond,
			OfferTTLFactors: []sd.TTLFactor{{Service: 0x1234, Instance: 1, Factor: 5}}, MaxSubscribers: 3,
		},
		ClientIDs: runtime.Range{First: 0x1200, Last: 0x13FF}, ClientPorts: runtime.Range{First: 30491, Last: 30499},
		MaxMessage: 17016, ReceiveBuffer: 1703936, DrainTimeout: 5 * time.Second, MagicCookies: true, NoSessions: true,
	}, n)

	cfg, deploy := service(c, c.Services[0])
	require.Equal(t, []runtime.EventConfig{
		{ID: 0x8001, Field: true, Reliable: true, Eventgroups: []uint16{0x4455}},
		{ID: 0x8002, Eventgroups: []uint16{0x4455, 0x4456}},
	}, cfg.Events)
	require.Equal(t, []runtime.EventgroupConfig{{ID: 0x4455, Multicast: netip.MustParseAddrPort("224.225.226.234:32345"), Threshold: 8}}, cfg.Eventgroups)
	require.Equal(t, []uint16{0x22, 0x1001}, slices.Sorted(maps.Keys(deploy.Requests)))
	require.Equal(t, []uint16{0x21}, slices.Sorted(maps.Keys(deploy.Responses)))
	event := deploy.Events[0x8001]
	require.Equal(t, e2e.P04, event.E2E.Profile)
	require.False(t, event.E2E.Vsomeip, "instance 0x5678 has no place in the data id")
	require.NotNil(t, event.TP)
	require.Equal(t, 8352, event.MaxPayload)
	require.Equal(t, map[uint16]runtime.FilterConfig{
		0x8001: {OnChange: true, Interval: 5 * time.Second, ChangeResetsInterval: true, Ignore: map[int]byte{1: 0xFF, 2: 0x0F}}, 0x8002: {},
	}, filters(c, 0xB519, 1))
}
