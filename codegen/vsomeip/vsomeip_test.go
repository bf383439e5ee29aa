package vsomeip_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/vsomeip"
)

const full = `{
  "unicast": "10.0.2.15", "netmask": "255.255.240.0", "device": "eth0",
  "diagnosis": "0x12", "diagnosis_mask": "0xFE00",
  "applications": [{"name": "one", "id": "0x1277"}, {"name": "two", "id": 4661, "has_session_handling": "false"}],
  "services": [{
    "service": "0x1234", "instance": 22136,
    "reliable": {"port": "30509", "enable-magic-cookies": "true"}, "unreliable": "0x7731",
    "multicast": {"address": "224.225.226.233", "port": "32344"},
    "events": [{"event": "0x8001", "is_field": "true", "is_reliable": true, "update-cycle": 2000}, {"event": "32770"}],
    "eventgroups": [
      {"eventgroup": "0x4455", "events": ["0x8001", 32770], "multicast": {"address": "224.225.226.234", "port": 32345}, "threshold": "8"},
      {"eventgroup": "0x4456", "events": ["0x8002"], "is_multicast": "true", "multicast": "225.226.227.228"}],
    "someip-tp": {"service-to-client": ["0x8001", {"method": "0x21", "max-segment-length": "1392", "separation-time": 10}], "client-to-service": ["0x22"]},
    "debounce-times": {"requests": {"0x1001": {"debounce-time": "1", "maximum-retention-time": "2"}}, "responses": {"0x8001": {"debounce-time": "0"}}}
  }, {"service": "0x2222", "instance": "0001", "unicast": "10.0.2.23", "reliable": "30503"}],
  "servicegroups": [{"name": "default", "unicast": "local", "services": [{"service": "1", "instance": "0x1", "unicast": "local", "unreliable": 30001}]}],
  "clients": [{"service": "0x8888", "instance": "1", "reliable": [40000, "0x10"], "unreliable": "41234"},
    {"unreliable_client_ports": {"first": "30491", "last": "30499"}, "unreliable_remote_ports": {"first": "30500", "last": "30599"}}],
  "npdu-default-timings": {"debounce-time-request": "1", "debounce-time-response": "3", "max-retention-time-request": "7", "max-retention-time-response": "5"},
  "payload-sizes": [{"unicast": "10.0.2.1", "ports": [{"port": "30509", "max-payload-size": "14999"}]}],
  "max-payload-size-reliable": "17000", "max-payload-size-unreliable": "8352",
  "debounce": [{"service": "0xb519", "instance": "0x0001", "events": [{"event": "0x8001", "on_change": "true", "interval": 5000, "on_change_resets_interval": "true", "ignore": [1, {"index": 2, "mask": "0x0f"}]}, {"event": "0x8002", "interval": "never"}]}],
  "e2e": {"e2e_enabled": "true", "protected": [{"service_id": "0x1234", "event_id": "0x8001", "profile": "P04", "variant": "both", "crc_offset": "64", "data_id": "0x2d"}]},
  "supports_selective_broadcasts": {"address": "10.0.2.9"},
  "tcp-connect-time-max": "10000", "tcp-restart-aborts-max": "15", "udp-receive-buffer-size": "1703936", "shutdown_timeout": "5000",
  "service-discovery": {"enable": "true", "multicast": "224.212.244.223", "port": "30666", "protocol": "udp",
    "initial_delay_min": "1234", "initial_delay_max": "2345", "repetitions_base_delay": "4242", "repetitions_max": "4", "ttl": "13",
    "cyclic_offer_delay": "2132", "request_response_delay": "1111", "max_remote_subscribers": "3",
    "ttl_factor_offers": [{"service": "0x1234", "instance": "0x1", "ttl_factor": "5"}]},
  "logging": {"level": "debug", "anything": [{"at": "all"}]}, "security": {}, "routing": {"host": {"name": "one"}}
}`

func TestParse(t *testing.T) {
	got, err := vsomeip.Parse("full.json", []byte(full))
	require.NoError(t, err)
	require.True(t, got.Discovery.Set["ttl"])
	require.False(t, got.Discovery.Set["offer_debounce_time"])
	got.Discovery.Set = nil
	addr, at := netip.MustParseAddr, netip.MustParseAddrPort
	pos := func(line, column int) model.Position {
		return model.Position{File: "full.json", Line: line, Column: column}
	}
	require.Equal(t, &vsomeip.Config{
		Unicast: addr("10.0.2.15"), Netmask: 20, Device: "eth0", Diagnosis: 0x12, DiagnosisMask: 0xFE00,
		Applications: []vsomeip.Application{{Name: "one", ID: 0x1277, Sessions: true}, {Name: "two", ID: 0x1235}},
		Discovery: vsomeip.Discovery{
			Enable: true, Group: addr("224.212.244.223"), Port: 30666, Protocol: "udp",
			InitialDelayMin: 1234 * time.Millisecond, InitialDelayMax: 2345 * time.Millisecond,
			RepetitionsBaseDelay: 4242 * time.Millisecond, RepetitionsMax: 4, TTL: 13,
			CyclicOfferDelay: 2132 * time.Millisecond, RequestResponseDelay: 1111 * time.Millisecond, MaxRemoteSubscribers: 3,
			OfferTTLFactors: []vsomeip.TTLFactor{{Service: 0x1234, Instance: 1, Factor: 5}},
		},
		Services: []vsomeip.Service{
			{
				Pos: pos(5, 16), Service: 0x1234, Instance: 0x5678, TCP: 30509, UDP: 0x7731, MagicCookies: true, Multicast: at("224.225.226.233:32344"),
				Events: []vsomeip.Event{{ID: 0x8001, Field: true, Reliable: true, UpdateCycle: 2 * time.Second}, {ID: 0x8002}},
				Eventgroups: []vsomeip.Eventgroup{
					{ID: 0x4455, Events: []uint16{0x8001, 0x8002}, Multicast: at("224.225.226.234:32345"), Threshold: 8},
					{ID: 0x4456, Events: []uint16{0x8002}, Multicast: at("225.226.227.228:0")},
				},
				ServiceToClient: []vsomeip.Segmented{{Method: 0x8001}, {Method: 0x21, MaxSegment: 1392, Separation: 10 * time.Millisecond}},
				ClientToService: []vsomeip.Segmented{{Method: 0x22}},
				Requests:        map[uint16]vsomeip.Timings{0x1001: {Debounce: time.Millisecond, Retention: 2 * time.Millisecond}},
				Responses:       map[uint16]vsomeip.Timings{0x8001: {}},
			},
			{Pos: pos(15, 6), Service: 0x2222, Instance: 1, Unicast: addr("10.0.2.23"), TCP: 30503},
			{Pos: pos(16, 74), Service: 1, Instance: 1, UDP: 30001},
		},
		Clients: []vsomeip.Client{
			{Pos: pos(17, 15), Service: 0x8888, Instance: 1, TCP: []uint16{40000, 16}, UDP: []uint16{41234}},
			{Pos: pos(18, 5), UDPPorts: vsomeip.Range{First: 30491, Last: 30499}, UDPRemote: vsomeip.Range{First: 30500, Last: 30599}},
		},
		Timings:            &vsomeip.Timings{Debounce: 3 * time.Millisecond, Retention: 7 * time.Millisecond},
		PayloadSizes:       []vsomeip.PayloadSize{{Unicast: addr("10.0.2.1"), Port: 30509, Max: 14999}},
		MaxPayloadReliable: 17000, MaxPayloadUnreliable: 8352,
		Filters: []vsomeip.Filter{{Service: 0xB519, Instance: 1, Events: []vsomeip.EventFilter{
			{Event: 0x8001, OnChange: true, ChangeResetsInterval: true, Interval: 5 * time.Second, Ignore: map[int]byte{1: 0xFF, 2: 0x0F}}, {Event: 0x8002},
		}}},
		E2E: true,
		Protected: []vsomeip.Protection{{
			Pos: pos(23, 48), Service: 0x1234, Event: 0x8001, Profile: "P04", Protector: true, Checker: true, DataID: 0x2D, CRCOffset: 64,
		}},
		Selective:      []netip.Addr{addr("10.0.2.9")},
		TCPConnectTime: 10 * time.Second, TCPRestarts: 15, UDPReceiveBuffer: 1703936, Shutdown: 5 * time.Second,
	}, got)
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		``:                                   "f:1:1: no JSON: the text ends too early",
		"{\n  \"unicast\": ":                 "f:2:14: no JSON: the text ends too early",
		"{\n  \"applications\": [ {}, ]\n}":  "f:2:25: no JSON: invalid character ']' looking for beginning of value",
		"{} {}":                              "f:1:4: text behind the end of the configuration",
		"[]":                                 "f:1:1: an array is no configuration; allowed: an object",
		"{\n\"unicast\": null}":              "f:2:12: null is no value",
		"{\"network\": 1,\n \"network\": 2}": "f:2:2: key \"network\" is there twice, first at f:1:2",
		`{"unicasts": "10.0.0.1"}`:           `f:1:2: unknown key "unicasts"; allowed: acceptances, `,
		`{"service-discovery": {"tll": 3}}`:  `f:1:24: unknown key "tll"; allowed: cyclic_offer_delay, enable, `,
		`{"services": [{"service": 1, "instance": 1, "debounce-times": {"requests": {"set": {}}}}]}`: `f:1:77: unknown key "set"; allowed: *`,
		`{"unicast": "10.0.0"}`:                                                              `f:1:13: "10.0.0" is none; allowed: an IP address`,
		`{"netmask": "255.0.255.0"}`:                                                         "f:1:13: netmask 255.0.255.0 has a hole",
		`{"netmask": "many"}`:                                                                `f:1:13: "many" is no netmask; allowed: 255.255.255.0, 24`,
		`{"service-discovery": {"port": "0x1FFFF"}}`:                                         `f:1:32: "0x1FFFF" is no such number; allowed: 1 to 65535`,
		`{"service-discovery": {"ttl": "0"}}`:                                                `f:1:31: "0" is no such number; allowed: 1 to 16777215`,
		`{"service-discovery": {"enable": "yes"}}`:                                           `f:1:34: "yes" is neither; allowed: true, false`,
		`{"service-discovery": {"protocol": "sctp"}}`:                                        `f:1:36: "sctp" is none of them; allowed: udp, tcp`,
		`{"service-discovery": {"multicast": "10.0.0.1"}}`:                                   "f:1:37: 10.0.0.1 is no multicast address; allowed: 224.0.0.0 to 239.255.255.255, ff00::/8",
		`{"service-discovery": {"initial_delay_min": "9", "initial_delay_max": "8"}}`:        "f:1:45: initial_delay_min is above initial_delay_max",
		`{"service-discovery": []}`:                                                          "f:1:23: an array; allowed: an object",
		`{"services": [{"service": "0x1234"}]}`:                                              "f:1:15: a service without instance",
		`{"services": [{"service": 1, "instance": 2}, {"service": "0x1", "instance": "2"}]}`: "f:1:46: instance 0001.0002 is there twice, first at f:1:15",
		`{"service-discovery": {"port": 30490}, "services": [{"service": 1, "instance": 2, "unreliable": "30490"}]}`:                     "f:1:97: port 30490 is that of service discovery",
		`{"services": [{"service": 1, "instance": 2, "someip-tp": {"client-to-service": [{"method": 1, "max-segment-length": 1391}]}}]}`: "f:1:117: segments of 1391 bytes: no multiple of 16",
		`{"clients": [{"reliable_client_ports": {"first": 2, "last": 1}}]}`:                                                              "f:1:40: ports 2 to 1 are no range",
		`{"e2e": {"protected": [{"profile": "P99"}]}}`:                                                                                   `f:1:36: "P99" is none of them; allowed: P01, `,
	} {
		_, err := vsomeip.Parse("f", []byte(text))
		require.ErrorContains(t, err, want, text)
		var e *vsomeip.Error
		require.ErrorAs(t, err, &e)
	}
	deep := ""
	for range 40 {
		deep += `{"logging": `
	}
	_, err := vsomeip.Parse("f", []byte(deep))
	require.ErrorContains(t, err, "nested too deeply")
}

// A folder is one configuration: what several files say must agree.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("a.json", `{"unicast": "10.0.0.1", "services": [{"service": 1, "instance": 1}], "service-discovery": {"ttl": "3"}}`)
	write("b.json", `{"unicast": "10.0.0.1", "services": [{"service": 2, "instance": 1}], "service-discovery": {"port": "30490"}}`)
	write("note.txt", "no configuration")
	c, err := vsomeip.Load(dir)
	require.NoError(t, err)
	require.Len(t, c.Services, 2)
	require.Equal(t, filepath.Join(dir, "b.json")+":1:38", c.Services[1].Pos.String())
	require.EqualValues(t, 3, c.Discovery.TTL)
	require.EqualValues(t, 30490, c.Discovery.Port)

	write("c.json", `{"unicast": "10.0.0.2", "services": {"service": 2}}`)
	_, err = vsomeip.Load(dir)
	require.ErrorContains(t, err, filepath.Join(dir, "c.json")+`:1:13: "10.0.0.2" contradicts "10.0.0.1" at `+filepath.Join(dir, "a.json")+":1:13")
	require.ErrorContains(t, err, filepath.Join(dir, "c.json")+":1:37: an object here, an array at ")

	one, err := vsomeip.Load(filepath.Join(dir, "a.json"))
	require.NoError(t, err)
	require.Len(t, one.Services, 1)
	empty, err := vsomeip.Load(t.TempDir())
	require.NoError(t, err)
	require.True(t, empty.Discovery.Enable)
	_, err = vsomeip.Load(filepath.Join(dir, "none.json"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// FuzzParse: whatever the text, a mistake has a place.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"unicast": "10.0.2.15", "netmask": "255.255.240.0", "diagnosis": "0x12", "service-discovery": {"ttl": "13", "port": 30490}}`))
	f.Add([]byte(`{"services": [{"service": 1, "instance": 2, "reliable": {"port": "30509"}, "eventgroups": [{"eventgroup": 3, "events": ["0x8001"]}]}]}`))
	f.Add([]byte(`{"services": [{"service": 1, "instance": 2, "debounce-times": {"requests": {"0x1001": {"debounce-time": "1"}}}}]}`))
	f.Add([]byte(`{"e2e": {"e2e_enabled": "true", "protected": [{"profile": "P04", "data_id": "0x2d"}]}, "logging": [{}]}`))
	f.Add([]byte(`{"services": [{"service": 1, "instance": "0x1", "unicast": "local", "unreliable": 30001}]}`))
	f.Add([]byte(`{"a": [1, {"b": null}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, err := vsomeip.Parse("f", text)
		if err == nil {
			return
		}
		var e *vsomeip.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "f", e.Pos.File)
		require.Positive(t, e.Pos.Line)
		require.Positive(t, e.Pos.Column)
	})
}
