package sd_test

import (
	"bytes"
	"testing"

	"carisma.dev/gateway/someip/sd"
)

func FuzzParse(f *testing.F) {
	for _, tc := range golden {
		f.Add(tc.bytes)
	}
	m := sd.Message{Session: 2, Entries: []sd.Entry{{Type: 0x0A, Count1: 15, Index2: 200, Count2: 3}}, Options: []sd.Option{
		sd.EndpointOption(ap("[fd53::a]:1"), sd.UDP), sd.LoadBalancingOption(1, 2), {Type: 0x77, Data: []byte{1}},
	}}
	if b, err := m.Append(nil); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, rest, err := sd.Parse(b)
		if err != nil {
			return
		}
		if len(m.Entries)*16 > len(b) || len(m.Options)*3 > len(b) {
			t.Fatalf("%d entries and %d options out of %d bytes", len(m.Entries), len(m.Options), len(b))
		}
		for i := range m.Entries {
			first, second, ok := m.Runs(&m.Entries[i])
			if ok && len(first)+len(second) != int(m.Entries[i].Count1+m.Entries[i].Count2) {
				t.Fatal("runs do not have their lengths")
			}
		}
		for i := range m.Options {
			for range m.Options[i].Configuration() {
			}
		}
		if len(m.Options) > 256 {
			return
		}
		// What was understood can be written, and is understood the same again.
		once, err := m.Append(nil)
		if err != nil {
			t.Fatalf("%v: %+v", err, m)
		}
		again, tail, err := sd.Parse(once)
		if err != nil || again.OptionErr != nil || len(tail) != 0 {
			t.Fatalf("%v %v: %x", err, again.OptionErr, once)
		}
		twice, err := again.Append(nil)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v\n%x\n%x", err, once, twice)
		}
		_ = rest
	})
}
