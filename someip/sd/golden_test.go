package sd_test

import (
	"encoding/hex"
	"net/netip"
	"strings"

	"carisma.dev/gateway/someip/sd"
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

func ap(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func config(items ...string) sd.Option {
	o, err := sd.ConfigurationOption(items...)
	if err != nil {
		panic(err)
	}
	return o
}

// golden are messages as another implementation made them (digest 7.5).
var golden = []struct {
	name  string
	bytes []byte
	msg   sd.Message
}{
	{
		"offer UDP and TCP", unhex(`
		ff ff 81 00 00 00 00 3c 00 00 00 01 01 01 02 00
		c0 00 00 00 00 00 00 10 01 00 00 20 12 34 56 78
		01 00 00 03 00 00 00 00 00 00 00 18 00 09 04 00
		c0 a8 01 0a 00 11 77 2d 00 09 04 00 c0 a8 01 0a
		00 06 77 2e`),
		sd.Message{
			Session: 1, Flags: sd.FlagReboot | sd.FlagUnicast,
			Entries: []sd.Entry{{Type: sd.OfferService, Count1: 2, Service: 0x1234, Instance: 0x5678, Major: 1, TTL: 3}},
			Options: []sd.Option{
				sd.EndpointOption(ap("192.168.1.10:30509"), sd.UDP),
				sd.EndpointOption(ap("192.168.1.10:30510"), sd.TCP),
			},
		},
	},
	{
		"find any", unhex(`
		ff ff 81 00 00 00 00 24 00 00 00 01 01 01 02 00
		c0 00 00 00 00 00 00 10 00 00 00 00 12 34 ff ff
		ff 00 00 03 ff ff ff ff 00 00 00 00`),
		sd.Message{
			Session: 1, Flags: sd.FlagReboot | sd.FlagUnicast,
			Entries: []sd.Entry{{
				Type: sd.FindService, Service: 0x1234, Instance: 0xFFFF, Major: 0xFF, TTL: 3, Minor: 0xFFFFFFFF,
			}},
		},
	},
	{
		"subscribe", unhex(`
		ff ff 81 00 00 00 00 30 00 00 00 01 01 01 02 00
		c0 00 00 00 00 00 00 10 06 00 00 10 12 34 56 78
		01 00 00 03 00 00 44 55 00 00 00 0c 00 09 04 00
		c0 a8 01 14 00 11 9c 41`),
		sd.Message{
			Session: 1, Flags: sd.FlagReboot | sd.FlagUnicast,
			Entries: []sd.Entry{subscribe(3)},
			Options: []sd.Option{sd.EndpointOption(ap("192.168.1.20:40001"), sd.UDP)},
		},
	},
	{
		"subscribe with counter", unhex(`
		ff ff 81 00 00 00 00 30 00 00 00 01 01 01 02 00
		c0 00 00 00 00 00 00 10 06 00 00 10 12 34 56 78
		01 00 00 03 00 05 44 55 00 00 00 0c 00 09 04 00
		c0 a8 01 14 00 11 9c 41`),
		sd.Message{
			Session: 1, Flags: sd.FlagReboot | sd.FlagUnicast,
			Entries: []sd.Entry{with(subscribe(3), func(e *sd.Entry) { e.Counter = 5 })},
			Options: []sd.Option{sd.EndpointOption(ap("192.168.1.20:40001"), sd.UDP)},
		},
	},
	{
		"subscribe with counter and initial data", unhex(`
		ff ff 81 00 00 00 00 30 00 00 00 01 01 01 02 00
		e0 00 00 00 00 00 00 10 06 00 00 10 12 34 56 78
		01 00 00 03 00 85 44 55 00 00 00 0c 00 09 04 00
		c0 a8 01 14 00 11 9c 41`),
		sd.Message{
			Session: 1, Flags: sd.FlagReboot | sd.FlagUnicast | sd.FlagInitialData,
			Entries: []sd.Entry{with(subscribe(3), func(e *sd.Entry) { e.Counter, e.InitialData = 5, true })},
			Options: []sd.Option{sd.EndpointOption(ap("192.168.1.20:40001"), sd.UDP)},
		},
	},
	{
		"ack with multicast", unhex(`
		ff ff 81 00 00 00 00 30 00 00 00 01 01 01 02 00
		c0 00 00 00 00 00 00 10 07 00 00 10 12 34 56 78
		01 00 00 03 00 00 44 55 00 00 00 0c 00 09 14 00
		e0 e1 e2 e9 00 11 7e 58`),
		sd.Message{
			Session: 1, Flags: sd.FlagReboot | sd.FlagUnicast,
			Entries: []sd.Entry{with(subscribe(3), func(e *sd.Entry) { e.Type = sd.SubscribeAck })},
			Options: []sd.Option{sd.MulticastOption(ap("224.225.226.233:32344"))},
		},
	},
	{
		"nack", unhex(`
		ff ff 81 00 00 00 00 24 00 00 00 01 01 01 02 00
		c0 00 00 00 00 00 00 10 07 00 00 00 12 34 56 78
		01 00 00 00 00 00 44 55 00 00 00 00`),
		sd.Message{
			Session: 1, Flags: sd.FlagReboot | sd.FlagUnicast,
			Entries: []sd.Entry{with(subscribe(0), func(e *sd.Entry) { e.Type, e.Count1 = sd.SubscribeAck, 0 })},
		},
	},
	{
		"stop subscribe and subscribe", unhex(`
		ff ff 81 00 00 00 00 40 00 00 00 01 01 01 02 00
		c0 00 00 00 00 00 00 20 06 00 00 10 12 34 56 78
		01 00 00 00 00 00 44 55 06 00 00 10 12 34 56 78
		01 00 00 03 00 00 44 55 00 00 00 0c 00 09 04 00
		c0 a8 01 14 00 11 9c 41`),
		sd.Message{
			Session: 1, Flags: sd.FlagReboot | sd.FlagUnicast,
			Entries: []sd.Entry{subscribe(0), subscribe(3)},
			Options: []sd.Option{sd.EndpointOption(ap("192.168.1.20:40001"), sd.UDP)},
		},
	},
	{
		"offer of another protocol", unhex(`
		ff ff 81 00 00 00 00 49 00 00 00 01 01 01 02 00
		c0 00 00 00 00 00 00 10 01 00 00 20 ff fe 00 01
		01 00 00 03 00 00 00 00 00 00 00 25 00 09 04 00
		c0 a8 01 0a 00 06 c3 83 00 16 01 00 0e 6f 74 68
		65 72 73 65 72 76 3d 67 72 70 63 01 61 02 62 3d
		00`),
		sd.Message{
			Session: 1, Flags: sd.FlagReboot | sd.FlagUnicast,
			Entries: []sd.Entry{{Type: sd.OfferService, Count1: 2, Service: 0xFFFE, Instance: 1, Major: 1, TTL: 3}},
			Options: []sd.Option{
				sd.EndpointOption(ap("192.168.1.10:50051"), sd.TCP),
				config("otherserv=grpc", "a", "b="),
			},
		},
	},
}

func subscribe(ttl uint32) sd.Entry {
	return sd.Entry{
		Type: sd.Subscribe, Count1: 1, Service: 0x1234, Instance: 0x5678, Major: 1, TTL: ttl, Eventgroup: 0x4455,
	}
}

func with(e sd.Entry, change func(*sd.Entry)) sd.Entry {
	change(&e)
	return e
}
