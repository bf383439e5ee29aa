package sd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/sd"
)

// optionBytes encodes one option.
func optionBytes(t *testing.T, o sd.Option) []byte {
	t.Helper()
	m := sd.Message{Options: []sd.Option{o}}
	b, err := m.Append(nil)
	require.NoError(t, err)
	return b[28:]
}

// parseOptions parses an options array.
func parseOptions(t *testing.T, b []byte) ([]sd.Option, error) {
	t.Helper()
	head := []byte{
		0xFF, 0xFF, 0x81, 0, 0, 0, byte((20 + len(b)) >> 8), byte(20 + len(b)), 0, 0, 0, 1, 1, 1, 2, 0,
		0xC0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(len(b) >> 8), byte(len(b)),
	}
	m, _, err := sd.Parse(append(head, b...))
	require.NoError(t, err)
	return m.Options, m.OptionErr
}

// The exact bytes of each option.
// FMT-8 to FMT-10.
func TestOptionBytes(t *testing.T) {
	for _, tc := range []struct {
		name string
		o    sd.Option
		b    string
	}{
		{"IPv4 endpoint", sd.EndpointOption(ap("192.168.1.100:30509"), sd.UDP), "00 09 04 00 c0 a8 01 64 00 11 77 2d"},
		{"IPv4 in IPv6", sd.EndpointOption(ap("[::ffff:192.168.1.100]:30509"), sd.TCP), "00 09 04 00 c0 a8 01 64 00 06 77 2d"},
		{
			"IPv6 endpoint", sd.EndpointOption(ap("[fd53::a]:30509"), sd.UDP),
			"00 15 06 00 fd 53 00 00 00 00 00 00 00 00 00 00 00 00 00 0a 00 11 77 2d",
		},
		{
			"IPv6 endpoint with zone", sd.EndpointOption(ap("[fe80::a%eth0]:30509"), sd.TCP),
			"00 15 06 00 fe 80 00 00 00 00 00 00 00 00 00 00 00 00 00 0a 00 06 77 2d",
		},
		{"IPv4 multicast", sd.MulticastOption(ap("224.225.226.233:32344")), "00 09 14 00 e0 e1 e2 e9 00 11 7e 58"},
		{
			"IPv6 multicast", sd.MulticastOption(ap("[ff14::5]:32344")),
			"00 15 16 00 ff 14 00 00 00 00 00 00 00 00 00 00 00 00 00 05 00 11 7e 58",
		},
		{"IPv4 SD endpoint", sd.SDEndpointOption(ap("10.0.0.1:30490")), "00 09 24 00 0a 00 00 01 00 11 77 1a"},
		{
			"IPv6 SD endpoint", sd.SDEndpointOption(ap("[fd53::1]:30490")),
			"00 15 26 00 fd 53 00 00 00 00 00 00 00 00 00 00 00 00 00 01 00 11 77 1a",
		},
		{"load balancing", sd.LoadBalancingOption(1, 100), "00 05 02 00 00 01 00 64"},
		{"configuration", config("a=b", "c"), "00 08 01 00 03 61 3d 62 01 63 00"},
		{"empty configuration", config(), "00 02 01 00 00"},
		{"unknown", sd.Option{Type: 0x77, Reserved: 0x80, Data: []byte{1, 2, 3, 4}}, "00 05 77 80 01 02 03 04"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := unhex(tc.b)
			require.Equal(t, want, optionBytes(t, tc.o))
			got, err := parseOptions(t, want)
			require.NoError(t, err)
			require.Equal(t, []sd.Option{tc.o}, got)
			for i := 1; i < len(want); i++ { // cut off
				_, err := parseOptions(t, want[:i])
				require.ErrorIs(t, err, sd.ErrOption, "%d bytes", i)
			}
		})
	}
}

// Cases 37 and 38: an unknown option has Length+3 bytes, what follows is read.
// FMT-7.
func TestCase38SkipUnknownOption(t *testing.T) {
	got, err := parseOptions(t, unhex("00 05 77 00 01 02 03 04  00 09 04 00 c0 a8 01 64 00 11 77 2d  00 00 99  00 05 02 00 00 01 00 64"))
	require.NoError(t, err)
	require.Len(t, got, 4)
	require.Equal(t, sd.EndpointOption(ap("192.168.1.100:30509"), sd.UDP), got[1])
	require.Equal(t, sd.LoadBalancingOption(1, 100), got[3])
}

// Case 40: Length counts the reserved byte, the strings and the terminator.
// FMT-9.
func TestCase40ConfigurationLength(t *testing.T) {
	good := unhex("00 08 01 00 03 61 3d 62 01 63 00")
	got, err := parseOptions(t, good)
	require.NoError(t, err)
	require.Equal(t, []string{"a=b", "c"}, slices.Collect(got[0].Configuration()))
	for name, b := range map[string]string{
		"terminator missing":     "00 07 01 00 03 61 3d 62 01 63",
		"string beyond the end":  "00 06 01 00 09 61 3d 62 00",
		"nothing but the header": "00 01 01 00",
	} {
		_, err := parseOptions(t, unhex(b))
		require.ErrorIs(t, err, sd.ErrOption, name)
	}
	for item := range got[0].Configuration() { // stopping early
		require.Equal(t, "a=b", item)
		break
	}
	other := sd.LoadBalancingOption(1, 1)
	require.Empty(t, slices.Collect(other.Configuration()))
}

// Case 41: Length 8 is refused, addresses and ports are in network order.
func TestCase41IPv4Length(t *testing.T) {
	for _, b := range []string{"00 08 04 00 64 01 a8 c0 11 2d 77", "00 0a 04 00 c0 a8 01 64 00 11 77 2d 00", "00 09 06 00 c0 a8 01 64 00 11 77 2d"} {
		_, err := parseOptions(t, unhex(b))
		require.ErrorIs(t, err, sd.ErrOption, b)
	}
}

// FMT-9.
func TestConfigurationItems(t *testing.T) {
	for _, bad := range []string{"", "=x", "a\x01=b", "ä=b", strings.Repeat("k", 256)} {
		_, err := sd.ConfigurationOption(bad)
		require.ErrorIs(t, err, sd.ErrRange, "%q", bad)
	}
	_, err := sd.ConfigurationOption(slices.Repeat([]string{strings.Repeat("k", 255)}, 256)...)
	require.ErrorIs(t, err, sd.ErrRange)
	require.Equal(t, "udp", sd.UDP.String())
	require.Equal(t, "tcp", sd.TCP.String())
	require.Equal(t, "0x84", sd.Proto(0x84).String())
}
