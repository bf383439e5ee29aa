package capture_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/capture"
	"carisma.dev/gateway/someip/internal/corpus"
	"carisma.dev/gateway/someip/sd"
)

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// In a name that is not here there is no SOME/IP.
var messagesOf = map[string]int{
	"SomeIpTp.pcapng": 2, "someip.pcapng": 3, "tcp_someip.pcap": 55, "udp_someip.pcapng": 55,
	"someip-tp.pcap": 9, "someip_sd_sample.pcap": 6, "error_on_event_dataset.pcap": 1524, "normal_dataset.pcap": 5284,
	"all_defined_methods_once_20260506_125139.pcapng": 28, "playground_seed.pcapng": 274,
	"someip_client_cf12fb22.pcapng":    37,
	"vsomeip_ground_truth_2022.pcapng": 22, // and one that an ICMP message quotes
	"someip1.pcap":                     3, "someip3.pcap": 18, "vsomeip_publish_5530c1db.pcapng": 18,
}

// Every capture of the corpus holds what tshark says, field by field, and its
// messages encode to the byte.
func TestCorpusCaptures(t *testing.T) {
	seen := 0
	require.NoError(t, filepath.WalkDir(corpus.Path(t, "pcap"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		seen++
		t.Run(d.Name(), func(t *testing.T) {
			records, stats, err := read(t, readFile(t, path), capture.Config{})
			require.NoError(t, err)
			for _, m := range messages(t, records) {
				roundTrip(t, m)
			}
			require.Len(t, records, messagesOf[d.Name()])
			require.Zero(t, stats.Faults)
			require.Zero(t, stats.Fragments)
			if len(records) > 0 {
				agree(t, path, records)
			}
		})
		return nil
	}))
	require.GreaterOrEqual(t, seen, len(messagesOf))
}

// roundTrip decodes and encodes the payload of discovery messages.
func roundTrip(t *testing.T, m someip.Message) {
	t.Helper()
	if m.Service != someip.ServiceSD || m.Method != someip.MethodSD {
		return
	}
	b := m.Append(nil)
	s, rest, err := sd.Parse(b)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.NoError(t, s.OptionErr)
	for i := range s.Entries {
		_, _, ok := s.Runs(&s.Entries[i])
		require.True(t, ok)
	}
	again, err := s.Append(nil)
	require.NoError(t, err)
	require.Equal(t, b, again)
}

// The single frames of the corpus, hexadecimal text, as a capture.
func TestCorpusFrames(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(corpus.Path(t, "frames"), "*", "*.dat"))
	require.NoError(t, err)
	require.Len(t, paths, 4)
	var frames [][]byte
	for _, p := range paths {
		b, err := hex.DecodeString(string(bytes.TrimSpace(readFile(t, p))))
		require.NoError(t, err)
		frames = append(frames, b)
	}
	file := filepath.Join(t.TempDir(), "frames.pcap")
	b := pcap(t, layers.LinkTypeEthernet, frames...)
	require.NoError(t, os.WriteFile(file, b, 0o600))
	records, stats, err := read(t, b, capture.Config{})
	require.NoError(t, err)
	require.EqualValues(t, 4, stats.Frames)
	require.Zero(t, stats.Faults+stats.Other+stats.Undecodable)
	for _, m := range messages(t, records) {
		roundTrip(t, m)
	}
	agree(t, file, records)
}

// Messages that a log and trace file of another kind carries, each behind a length
// of its own. The fourth has an unknown event, the third a major of 3, the last a
// Length beyond its end: framing is all that is judged here.
func TestCorpusTrace(t *testing.T) {
	b := corpus.Read(t, "frames/chipmunk/someip.dlt")
	var whole, short int
	for i := range b[:len(b)-8] {
		if !bytes.Equal(b[i+1:i+3], []byte{0x80, 0x05}) && !bytes.Equal(b[i+1:i+3], []byte{0x80, 0x06}) || b[i-1] != 0 {
			continue
		}
		m, rest, err := someip.ParseMessage(b[i-1:])
		if err != nil {
			require.ErrorIs(t, err, someip.ErrShort)
			short++
			continue
		}
		whole++
		require.NoError(t, m.Validate())
		require.Equal(t, someip.Notification, m.Type)
		require.Equal(t, b[i-1:len(b)-len(rest)], m.Append(nil))
	}
	require.Equal(t, 5, whole)
	require.Equal(t, 1, short)
}

// fieldList is a list of the values that a field has in the messages of one
// direction, as the authors of two captures published them.
type fieldList struct {
	Outgoing bool
	Fields   map[string]struct{ Values []any }
}

func fieldLists(t *testing.T, name string) (all []fieldList) {
	t.Helper()
	require.NoError(t, json.Unmarshal(corpus.Read(t, "pcap-text/"+name), &all))
	require.NotEmpty(t, all)
	return all
}

// values returns a field's values as sorted text, those without value left out.
func (l fieldList) values(name string) []string {
	set := map[string]bool{}
	for _, v := range l.Fields[name].Values {
		switch v := v.(type) {
		case float64:
			set[strconv.Itoa(int(v))] = true
		case string:
			set[v] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// ofMessages returns the same of decoded messages.
func ofMessages(all []someip.Message) map[string][]string {
	sets := map[string]map[string]bool{}
	put := func(name string, v int) { putText(sets, name, strconv.Itoa(v)) }
	for _, m := range all {
		put("srv_id", int(m.Service))
		put("sub_id", int(m.Method>>15))
		id := "method_id"
		if someip.IsEvent(m.Method) {
			id = "event_id"
		}
		put(id, int(m.Method&0x7FFF))
		put("len", int(m.Length))
		put("client_id", int(m.Client))
		put("session_id", int(m.Session))
		put("proto_ver", int(m.ProtocolVersion))
		put("iface_ver", int(m.InterfaceVersion))
		put("msg_type", int(m.Type))
		put("retcode", int(m.Code))
		if len(m.Payload) > 0 {
			putText(sets, "load", hex.EncodeToString(padded(m)))
		}
	}
	lists := map[string][]string{}
	for name, set := range sets {
		lists[name] = slices.Sorted(maps.Keys(set))
	}
	return lists
}

// padded returns a payload as the lists have it: with the bytes by which Ethernet
// fills a frame up to its least size, though the Length field does not count them.
func padded(m someip.Message) []byte {
	const least, ahead = 60, 14 + 20 + 8
	return append(bytes.Clone(m.Payload), make([]byte, max(0, least-ahead-m.Size()))...)
}

func putText(sets map[string]map[string]bool, name, v string) {
	if sets[name] == nil {
		sets[name] = map[string]bool{}
	}
	sets[name][v] = true
}

// The field list of a whole session, requests and what comes back.
func TestCorpusFieldsOfSession(t *testing.T) {
	records, _, err := read(t, corpus.Read(t, "pcap/someip-llm-fuzzer/playground_seed.pcapng"), capture.Config{})
	require.NoError(t, err)
	const service = 31000
	for _, list := range fieldLists(t, "someip-llm-fuzzer/playground_fields.json") {
		var of []someip.Message
		for _, r := range records {
			if to := r.To.Port() == service; r.Message.Service != someip.ServiceSD && to == list.Outgoing {
				of = append(of, r.Message)
			}
		}
		got := ofMessages(of)
		for name := range list.Fields {
			require.Equal(t, list.values(name), got[name], name)
		}
	}
}

// The fields of one request make the bytes of the request in a capture.
func TestCorpusFieldsOfRequest(t *testing.T) {
	list := fieldLists(t, "someip-protocol-fuzzer/someip_fields.json")[0]
	one := func(name string) int {
		v := list.values(name)
		require.Len(t, v, 1, name)
		n, err := strconv.Atoi(v[0])
		require.NoError(t, err)
		return n
	}
	payload, err := hex.DecodeString(list.values("load")[0])
	require.NoError(t, err)
	m := someip.Message{Header: someip.Header{
		Service: uint16(one("srv_id")), Method: uint16(one("sub_id")<<15 | one("method_id")), Length: uint32(one("len")),
		Client: uint16(one("client_id")), Session: uint16(one("session_id")),
		ProtocolVersion: uint8(one("proto_ver")), InterfaceVersion: uint8(one("iface_ver")),
		Type: someip.MessageType(one("msg_type")), Code: someip.ReturnCode(one("retcode")),
	}, Payload: payload}
	b := m.Append(nil)
	got, rest, err := someip.ParseMessage(b)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, m, got)

	records, _, err := read(t, corpus.Read(t, "pcap/someip-protocol-fuzzer/vsomeip_ground_truth_2022.pcapng"), capture.Config{})
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(records, func(r capture.Record) bool { return bytes.Equal(r.Bytes, b) }))
}
