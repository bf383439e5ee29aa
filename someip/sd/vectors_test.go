package sd_test

import (
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/internal/corpus"
	"carisma.dev/gateway/someip/sd"
)

// vectorFile has entries, options and messages as another implementation reads them.
type vectorFile struct {
	EntryValid []struct {
		Name, Bytes, Type                string
		Index1, Index2, NumOpt1, Numopt2 uint8
		Service, Instance, Major, TTL    string
		Minor, Eventgroup                string
		Counter                          uint8
	} `json:"sd_entry_valid"`
	EntryInvalid []struct{ Name, Bytes string } `json:"sd_entry_invalid"`
	OptionValid  []struct {
		Name, Bytes, Type, Payload, Priority, Weight, Address string
		L4Proto                                               uint8
		Port                                                  uint16
		Items                                                 [][2]*string
	} `json:"sd_option_valid"`
	OptionInvalid  []struct{ Name, Bytes string }        `json:"sd_option_invalid"`
	MessageValid   []struct{ Name, Bytes, Flags string } `json:"sd_message_valid"`
	MessageInvalid []string                              `json:"sd_message_invalid"`
	IndexInvalid   []string                              `json:"sd_message_option_index_out_of_range"`
}

func vectors(t *testing.T) (file vectorFile) {
	t.Helper()
	require.NoError(t, json.Unmarshal(corpus.Read(t, "vectors/pysomeip/pysomeip-header-sd.json"), &file))
	return file
}

// number reads a number of a vector; none is 0.
func number(t *testing.T, s string) uint64 {
	t.Helper()
	if s == "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 0, 32)
	require.NoError(t, err)
	return n
}

// enveloped puts an SD payload into a message.
func enveloped(payload []byte) []byte {
	return someip.NewNotification(someip.ServiceSD, someip.MethodSD, 1, 1, payload).Append(nil)
}

func array(b []byte) []byte {
	return append([]byte{0, 0, byte(len(b) >> 8), byte(len(b))}, b...)
}

// FMT-3, FMT-4.
func TestVectorEntries(t *testing.T) {
	file := vectors(t)
	require.NotEmpty(t, file.EntryValid)
	types := map[string]sd.EntryType{"find": sd.FindService, "offer": sd.OfferService, "subscribe": sd.Subscribe}
	for _, v := range file.EntryValid {
		b := enveloped(slices.Concat([]byte{0xC0, 0, 0, 0}, array(unhex(v.Bytes)), array(nil)))
		m, _, err := sd.Parse(b)
		require.NoError(t, err, v.Name)
		require.Equal(t, []sd.Entry{{
			Type: types[v.Type], Index1: v.Index1, Index2: v.Index2, Count1: v.NumOpt1, Count2: v.Numopt2,
			Service: uint16(number(t, v.Service)), Instance: uint16(number(t, v.Instance)), Major: uint8(number(t, v.Major)),
			TTL: uint32(number(t, v.TTL)), Minor: uint32(number(t, v.Minor)),
			Eventgroup: uint16(number(t, v.Eventgroup)), Counter: v.Counter,
		}}, m.Entries, v.Name)
		again, err := m.Append(nil)
		require.NoError(t, err, v.Name)
		require.Equal(t, b, again, v.Name)
	}
	// What that implementation refuses is skipped or ignored here (FMT-6): an unknown
	// type, and reserved bits, which a receiver does not look at.
	for _, v := range file.EntryInvalid {
		m, _, err := sd.Parse(enveloped(slices.Concat([]byte{0xC0, 0, 0, 0}, array(unhex(v.Bytes)), array(nil))))
		require.NoError(t, err, v.Name)
		require.Len(t, m.Entries, 1, v.Name)
	}
}

// FMT-7 to FMT-10.
func TestVectorOptions(t *testing.T) {
	file := vectors(t)
	require.NotEmpty(t, file.OptionValid)
	for _, v := range file.OptionValid {
		got, err := parseOptions(t, unhex(v.Bytes))
		require.NoError(t, err, v.Name)
		require.Len(t, got, 1)
		o := got[0]
		require.Equal(t, v.Bytes, hex.EncodeToString(optionBytes(t, o)), v.Name)
		require.EqualValues(t, number(t, v.Type), o.Type, v.Name)
		require.EqualValues(t, number(t, v.Priority), o.Priority, v.Name)
		require.EqualValues(t, number(t, v.Weight), o.Weight, v.Name)
		if v.Address != "" {
			require.Equal(t, netip.AddrPortFrom(netip.MustParseAddr(v.Address), v.Port), o.Endpoint, v.Name)
			require.EqualValues(t, v.L4Proto, o.Proto, v.Name)
		}
		var items []string
		for _, item := range v.Items {
			text := *item[0]
			if item[1] != nil {
				text += "=" + *item[1]
			}
			items = append(items, text)
		}
		require.Equal(t, items, slices.Collect(o.Configuration()), v.Name)
		if v.Payload != "" {
			// The first byte behind the type is the reserved one.
			require.Equal(t, v.Payload, hex.EncodeToString(append([]byte{o.Reserved}, o.Data...)), v.Name)
		}
	}
	for _, v := range file.OptionInvalid {
		got, err := parseOptions(t, unhex(v.Bytes))
		if v.Name == "configuration item not ASCII" {
			// A receiver keeps what it cannot use: the item is no key that anybody looks for.
			require.NoError(t, err)
			require.Len(t, got, 1)
			continue
		}
		require.ErrorIs(t, err, sd.ErrOption, v.Name)
		require.Empty(t, got, v.Name)
	}
}

// FMT-2, FMT-5, VAL-1.
func TestVectorMessages(t *testing.T) {
	file := vectors(t)
	require.NotEmpty(t, file.MessageValid)
	for _, v := range file.MessageValid {
		b := enveloped(unhex(v.Bytes))
		m, _, err := sd.Parse(b)
		require.NoError(t, err, v.Name)
		require.NoError(t, m.OptionErr, v.Name)
		require.EqualValues(t, number(t, v.Flags), m.Flags, v.Name)
		for i := range m.Entries {
			_, _, ok := m.Runs(&m.Entries[i])
			require.True(t, ok, v.Name)
		}
		again, err := m.Append(nil)
		require.NoError(t, err)
		require.Equal(t, b, again, v.Name)
	}
	for _, v := range file.MessageInvalid {
		_, _, err := sd.Parse(enveloped(unhex(v)))
		require.Error(t, err, v)
	}
	for _, v := range file.IndexInvalid {
		m, _, err := sd.Parse(enveloped(unhex(v)))
		require.NoError(t, err, v)
		require.Len(t, m.Entries, 1)
		_, _, ok := m.Runs(&m.Entries[0])
		require.False(t, ok, v)
	}
}
