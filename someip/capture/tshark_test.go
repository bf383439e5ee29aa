package capture_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/capture"
	"carisma.dev/gateway/someip/sd"
	"carisma.dev/gateway/someip/tp"
)

// field is a field as tshark names it, and its values in a message of ours in the
// order in which tshark prints them.
type field struct {
	name   string
	values func(m someip.Message, s *sd.Message) []any
}

func header(name string, of func(h someip.Header) any) field {
	return field{name, func(m someip.Message, _ *sd.Message) []any { return []any{of(m.Header)} }}
}

func entries(name string, of func(e sd.Entry) any) field {
	return field{"someipsd." + name, func(_ someip.Message, s *sd.Message) (all []any) {
		if s == nil {
			return nil
		}
		for _, e := range s.Entries {
			if v := of(e); v != nil {
				all = append(all, v)
			}
		}
		return all
	}}
}

func options(name string, of func(o sd.Option) any) field {
	return field{"someipsd.option." + name, func(_ someip.Message, s *sd.Message) (all []any) {
		if s == nil {
			return nil
		}
		for _, o := range s.Options {
			if v := of(o); v != nil {
				all = append(all, v)
			}
		}
		return all
	}}
}

func only[T any](ok bool, v T) any {
	if !ok {
		return nil
	}
	return v
}

func isAddress(o sd.Option) bool { return o.IsEndpoint() || o.IsMulticast() || o.IsSDEndpoint() }

// segmentOf returns the TP header of a segment.
func segmentOf(m someip.Message) (tp.Header, bool) {
	h, err := tp.ParseHeader(m.Payload)
	return h, m.Type.TP() && err == nil
}

// judged are the fields that are compared.
var judged = []field{
	header("someip.serviceid", func(h someip.Header) any { return h.Service }),
	header("someip.methodid", func(h someip.Header) any { return h.Method }),
	header("someip.length", func(h someip.Header) any { return h.Length }),
	header("someip.clientid", func(h someip.Header) any { return h.Client }),
	header("someip.sessionid", func(h someip.Header) any { return h.Session }),
	header("someip.protoversion", func(h someip.Header) any { return h.ProtocolVersion }),
	header("someip.interfaceversion", func(h someip.Header) any { return h.InterfaceVersion }),
	header("someip.messagetype", func(h someip.Header) any { return uint8(h.Type) }),
	header("someip.returncode", func(h someip.Header) any { return uint8(h.Code) }),
	{"someip.payload", func(m someip.Message, s *sd.Message) []any {
		b := m.Payload
		if _, ok := segmentOf(m); ok {
			b = b[tp.HeaderSize:]
		}
		if s != nil || len(b) == 0 {
			return nil
		}
		return []any{hex.EncodeToString(b)}
	}},
	{"someip.tp.offset", func(m someip.Message, _ *sd.Message) []any {
		h, ok := segmentOf(m)
		if !ok {
			return nil
		}
		return []any{h.Offset}
	}},
	{"someip.tp.flags.more_segments", func(m someip.Message, _ *sd.Message) []any {
		h, ok := segmentOf(m)
		if !ok {
			return nil
		}
		return []any{h.More}
	}},
	{"someipsd.flags", func(_ someip.Message, s *sd.Message) []any {
		if s == nil {
			return nil
		}
		return []any{uint8(s.Flags)}
	}},
	{"someipsd.length_entriesarray", func(_ someip.Message, s *sd.Message) []any {
		if s == nil {
			return nil
		}
		return []any{16 * len(s.Entries)}
	}},
	{"someipsd.length_optionsarray", func(m someip.Message, s *sd.Message) []any {
		if s == nil {
			return nil
		}
		return []any{len(m.Payload) - 12 - 16*len(s.Entries)}
	}},
	entries("entry.type", func(e sd.Entry) any { return uint8(e.Type) }),
	entries("entry.index1", func(e sd.Entry) any { return e.Index1 }),
	entries("entry.index2", func(e sd.Entry) any { return e.Index2 }),
	entries("entry.numopt1", func(e sd.Entry) any { return e.Count1 }),
	entries("entry.numopt2", func(e sd.Entry) any { return e.Count2 }),
	entries("entry.serviceid", func(e sd.Entry) any { return e.Service }),
	entries("entry.instanceid", func(e sd.Entry) any { return e.Instance }),
	entries("entry.majorver", func(e sd.Entry) any { return e.Major }),
	entries("entry.ttl", func(e sd.Entry) any { return e.TTL }),
	entries("entry.minorver", func(e sd.Entry) any { return only(!e.IsEventgroup(), e.Minor) }),
	entries("entry.eventgroupid", func(e sd.Entry) any { return only(e.IsEventgroup(), e.Eventgroup) }),
	entries("entry.counter", func(e sd.Entry) any { return only(e.IsEventgroup(), e.Counter) }),
	entries("entry.initialevents", func(e sd.Entry) any { return only(e.IsEventgroup(), e.InitialData) }),
	options("type", func(o sd.Option) any { return uint8(o.Type) }),
	options("length", func(o sd.Option) any {
		one := sd.Message{Options: []sd.Option{o}}
		b, _ := one.Append(nil)
		return binary.BigEndian.Uint16(b[28:])
	}),
	options("ipv4address", func(o sd.Option) any {
		return only(isAddress(o) && o.Endpoint.Addr().Is4(), o.Endpoint.Addr().String())
	}),
	options("ipv6address", func(o sd.Option) any {
		return only(isAddress(o) && o.Endpoint.Addr().Is6(), o.Endpoint.Addr().String())
	}),
	options("proto", func(o sd.Option) any { return only(isAddress(o), uint8(o.Proto)) }),
	options("port", func(o sd.Option) any { return only(isAddress(o), o.Endpoint.Port()) }),
	options("priority", func(o sd.Option) any { return only(o.Type == sd.OptionLoadBalancing, o.Priority) }),
	options("weight", func(o sd.Option) any { return only(o.Type == sd.OptionLoadBalancing, o.Weight) }),
}

const several = "\x1f" // between the values of one field

// dissect has tshark print the judged fields of each frame with SOME/IP.
func dissect(t *testing.T, file string, udp, tcp []uint16) map[int][][]string {
	t.Helper()
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed (make deps installs it)")
	}
	list := func(ports []uint16) string {
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(ports), " ", ","), "[]")
	}
	args := []string{
		"-n", "-r", file, "-o", "someip.reassemble_tp:FALSE", "-o", "someip.ports.udp:" + list(udp), "-o", "someip.ports.tcp:" + list(tcp),
		"-Y", "someip && !icmp && !icmpv6", // which quote packets that are there anyway
		"-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=" + several, "-e", "frame.number",
	}
	for _, f := range judged {
		args = append(args, "-e", f.name)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	frames := map[int][][]string{}
	for line := range strings.Lines(string(out)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		number, err := strconv.Atoi(columns[0])
		require.NoError(t, err)
		var all [][]string
		for _, c := range columns[1:] {
			if c == "" {
				all = append(all, nil)
			} else {
				all = append(all, strings.Split(c, several))
			}
		}
		require.Len(t, all, len(judged))
		frames[number] = all
	}
	return frames
}

// agree wants tshark to see the same messages with the same fields.
func agree(t *testing.T, file string, records []capture.Record) {
	t.Helper()
	var udp, tcp []uint16
	ours := map[int][][]any{}
	for _, r := range records {
		ports := &udp
		if r.Transport == capture.TCP {
			ports = &tcp
		}
		*ports = append(*ports, r.From.Port(), r.To.Port())
		if ours[r.Frame] == nil {
			ours[r.Frame] = make([][]any, len(judged))
		}
		var discovery *sd.Message
		if r.Message.Service == someip.ServiceSD {
			m, _, err := sd.Parse(r.Bytes)
			require.NoError(t, err, r)
			require.NoError(t, m.OptionErr, r)
			discovery = &m
		}
		for i, f := range judged {
			ours[r.Frame][i] = append(ours[r.Frame][i], f.values(r.Message, discovery)...)
		}
	}
	for _, ports := range []*[]uint16{&udp, &tcp} {
		slices.Sort(*ports)
		*ports = slices.Compact(*ports)
	}
	theirs := dissect(t, file, udp, tcp)
	require.Len(t, theirs, len(ours), "frames with SOME/IP")
	for frame, fields := range ours {
		require.Contains(t, theirs, frame)
		for i, values := range fields {
			if want := theirs[frame][i]; !slices.EqualFunc(values, want, same) {
				t.Fatalf("frame %d: %s: %v, tshark %q", frame, judged[i].name, values, want)
			}
		}
	}
}

// same compares a value with what tshark prints: numbers in either base.
func same(v any, printed string) bool {
	switch v := v.(type) {
	case string:
		return v == printed
	case bool:
		return v == (printed == "1" || printed == "True")
	}
	n, err := strconv.ParseUint(printed, 0, 64)
	if err != nil {
		return false
	}
	switch v := v.(type) {
	case uint8:
		return n == uint64(v)
	case uint16:
		return n == uint64(v)
	case uint32:
		return n == uint64(v)
	case int:
		return v >= 0 && n == uint64(v)
	}
	return false
}
