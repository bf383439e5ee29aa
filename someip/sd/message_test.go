package sd_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/sd"
)

// FMT-2 to FMT-4, FMT-13.
func TestGolden(t *testing.T) {
	for _, tc := range golden {
		t.Run(tc.name, func(t *testing.T) {
			got, rest, err := sd.Parse(tc.bytes)
			require.NoError(t, err)
			require.Empty(t, rest)
			require.NoError(t, got.OptionErr)
			require.Equal(t, tc.msg, normalised(got))

			b, err := tc.msg.Append(nil)
			require.NoError(t, err)
			require.Equal(t, tc.bytes, b)
		})
	}
}

// normalised makes empty slices nil, as literals have them.
func normalised(m sd.Message) sd.Message {
	if len(m.Entries) == 0 {
		m.Entries = nil
	}
	if len(m.Options) == 0 {
		m.Options = nil
	}
	return m
}

func TestGoldenTruncatedAtEveryOffset(t *testing.T) {
	for _, tc := range golden {
		for i := range tc.bytes {
			_, rest, err := sd.Parse(tc.bytes[:i])
			require.ErrorIs(t, err, someip.ErrShort, "%s: %d bytes", tc.name, i)
			require.Nil(t, rest)
		}
		// Cut off inside with a Length that fits.
		for i := someip.HeaderSize; i < len(tc.bytes); i++ {
			b := bytes.Clone(tc.bytes[:i])
			binary.BigEndian.PutUint32(b[4:], uint32(i-8))
			_, _, err := sd.Parse(b)
			require.Error(t, err, "%s: %d bytes", tc.name, i)
		}
	}
}

// Case 14: what is not a service discovery message is refused, also its payload
// without the header.
// FMT-1, VAL-1, HDR-4.
func TestCase14Envelope(t *testing.T) {
	good := golden[0].bytes
	for _, tc := range []struct {
		name   string
		change func(b []byte)
		want   error
	}{
		{"service", func(b []byte) { b[0] = 0x12 }, sd.ErrNotSD},
		{"method", func(b []byte) { b[2] = 0x80 }, sd.ErrNotSD},
		{"protocol version", func(b []byte) { b[12] = 2 }, someip.ErrProtocolVersion},
		{"interface version", func(b []byte) { b[13] = 2 }, sd.ErrNotSD},
		{"message type", func(b []byte) { b[14] = 0 }, sd.ErrNotSD},
		{"segment", func(b []byte) { b[14] |= 0x20 }, sd.ErrNotSD}, // TP-10
		{"return code", func(b []byte) { b[15] = 1 }, sd.ErrNotSD},
		{"length", func(b []byte) { b[7] = 19 }, someip.ErrLength},
		{"entries length no multiple of 16", func(b []byte) { b[23] = 15 }, sd.ErrEntriesLength},
		{"entries length too long", func(b []byte) { b[20] = 0xFF }, sd.ErrEntriesLength},
		{"options length too long", func(b []byte) { b[40] = 0xFF }, sd.ErrOptionsLength},
	} {
		b := bytes.Clone(good)
		tc.change(b)
		_, _, err := sd.Parse(b)
		require.ErrorIs(t, err, tc.want, tc.name)
		var parse *someip.ParseError
		require.ErrorAs(t, err, &parse, tc.name)
	}
	_, _, err := sd.Parse(good[someip.HeaderSize:])
	require.Error(t, err)
	// A client id is not looked at.
	b := bytes.Clone(good)
	b[8] = 0x11
	_, _, err = sd.Parse(b)
	require.NoError(t, err)
}

// Case 44: fifteen entries, two option runs, an index beyond the first.
// FMT-5.
func TestCase44ManyEntries(t *testing.T) {
	m := sd.Message{Session: 1, Flags: sd.FlagUnicast}
	for _, port := range []string{"1", "2", "3"} {
		m.Options = append(m.Options, sd.EndpointOption(ap("10.0.0.1:"+port), sd.UDP))
	}
	for i := range 15 {
		e := subscribe(3)
		e.Eventgroup = uint16(i + 1)
		switch i {
		case 4:
			e.Count1 = 2
		case 9:
			e.Index1 = 2
		case 12:
			e.Index2, e.Count2 = 1, 2
		}
		m.Entries = append(m.Entries, e)
	}
	b, err := m.Append(nil)
	require.NoError(t, err)
	require.EqualValues(t, 0xF0, b[23])

	got, _, err := sd.Parse(b)
	require.NoError(t, err)
	require.Equal(t, m, got)
	for i := range got.Entries {
		first, second, ok := got.Runs(&got.Entries[i])
		require.True(t, ok)
		want1, want2 := m.Options[0:1], []sd.Option(nil)
		switch i {
		case 4:
			want1 = m.Options[0:2]
		case 9:
			want1 = m.Options[2:3]
		case 12:
			want2 = m.Options[1:3]
		}
		require.Equal(t, want1, first)
		require.Equal(t, want2, second)
	}
}

// Case 46: an unknown entry type is 16 bytes to skip.
// FMT-6.
func TestCase46UnknownEntry(t *testing.T) {
	m := sd.Message{Session: 1, Flags: sd.FlagUnicast, Entries: []sd.Entry{
		{Type: 0x0A, Service: 1, Instance: 2, Major: 3, TTL: 4, Minor: 5},
		{Type: sd.FindService, Service: 0x1234, Instance: 0xFFFF, Major: 0xFF, TTL: 3, Minor: 0xFFFFFFFF},
	}}
	b, err := m.Append(nil)
	require.NoError(t, err)
	got, _, err := sd.Parse(b)
	require.NoError(t, err)
	require.Equal(t, m, normalised(got))
}

// 7.2: an index beyond the options makes one entry invalid, the index of an empty
// run does not matter.
// FMT-5.
func TestRunsOutOfRange(t *testing.T) {
	m := sd.Message{Options: []sd.Option{sd.LoadBalancingOption(1, 2)}}
	for _, tc := range []struct {
		e  sd.Entry
		ok bool
	}{
		{sd.Entry{}, true},
		{sd.Entry{Index1: 200, Index2: 7}, true},
		{sd.Entry{Count1: 1}, true},
		{sd.Entry{Count1: 1, Count2: 1}, true},
		{sd.Entry{Count1: 2}, false},
		{sd.Entry{Index1: 1, Count1: 1}, false},
		{sd.Entry{Index1: 255, Count1: 15}, false},
		{sd.Entry{Index2: 1, Count2: 1}, false},
	} {
		_, _, ok := m.Runs(&tc.e)
		require.Equal(t, tc.ok, ok, "%+v", tc.e)
	}
}

// 9.5: a malformed option takes those behind it along, not those before it and
// not the message.
// VAL-2.
func TestMalformedOption(t *testing.T) {
	m := sd.Message{
		Session: 1, Flags: sd.FlagUnicast, Entries: []sd.Entry{subscribe(3)},
		Options: []sd.Option{
			sd.EndpointOption(ap("10.0.0.1:1"), sd.UDP),
			{Type: sd.OptionLoadBalancing},
			sd.EndpointOption(ap("10.0.0.1:2"), sd.TCP),
		},
	}
	b, err := m.Append(nil)
	require.NoError(t, err)
	b[44+12+1] = 4 // length of the load balancing option
	got, _, err := sd.Parse(b)
	require.NoError(t, err)
	require.Equal(t, m.Entries, got.Entries)
	require.Equal(t, m.Options[:1], got.Options)
	var parse *someip.ParseError
	require.ErrorAs(t, got.OptionErr, &parse)
	require.ErrorIs(t, parse, sd.ErrOption)
	require.Equal(t, 44+12, parse.Offset)
}

// Bytes behind the options array are not part of it; the next message follows.
func TestBytesBehindOptions(t *testing.T) {
	b := append(bytes.Clone(golden[1].bytes), 1, 2, 3)
	binary.BigEndian.PutUint32(b[4:], uint32(len(b)-8))
	b = append(b, golden[0].bytes...)
	got, rest, err := sd.Parse(b)
	require.NoError(t, err)
	require.Equal(t, golden[1].msg, normalised(got))
	require.Equal(t, golden[0].bytes, rest)
}

func TestAppendRefusesWhatHasNoPlace(t *testing.T) {
	for name, m := range map[string]sd.Message{
		"TTL":          {Entries: []sd.Entry{{TTL: 1 << 24}}},
		"option count": {Entries: []sd.Entry{{Count1: 16}}},
		"counter":      {Entries: []sd.Entry{{Type: sd.Subscribe, Counter: 16}}},
		"address":      {Options: []sd.Option{{Type: sd.OptionIPv4Endpoint}}},
		"family":       {Options: []sd.Option{{Type: sd.OptionIPv4Endpoint, Endpoint: ap("[::1]:1")}}},
		"options":      {Options: slices.Repeat([]sd.Option{sd.LoadBalancingOption(1, 1)}, 257)},
		"option size":  {Options: []sd.Option{{Type: 0x77, Data: make([]byte, 0xFFFF)}}},
	} {
		b, err := m.Append([]byte("prefix"))
		require.ErrorIs(t, err, sd.ErrRange, name)
		require.Equal(t, "prefix", string(b), name)
	}
}

// A parsed message lends its slices to the next.
func TestParseIntoDoesNotAllocate(t *testing.T) {
	var m sd.Message
	buf := make([]byte, 0, 128)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, tc := range golden {
			if _, err := m.Parse(tc.bytes); err != nil {
				t.Fatal(err)
			}
			var err error
			if buf, err = m.Append(buf[:0]); err != nil {
				t.Fatal(err)
			}
		}
	}))
}
