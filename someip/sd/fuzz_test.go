package sd_test

import (
	"bytes"
	"testing"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/internal/corpus"
	"carisma.dev/gateway/someip/sd"
)

// discovery returns the service discovery messages of the corpus.
func discovery(f *testing.F) [][]byte {
	f.Helper()
	return corpus.Messages(f, 64, func(m someip.Message) bool { return m.Service == someip.ServiceSD })
}

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
	for _, b := range discovery(f) {
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

// FuzzOption: an option of any type and content in a message is skipped by its length or
// understood, and what stands behind it is read.
func FuzzOption(f *testing.F) {
	for _, o := range []sd.Option{
		sd.EndpointOption(ap("10.0.0.1:30509"), sd.UDP), sd.EndpointOption(ap("[fd53::a]:30509"), sd.TCP),
		sd.MulticastOption(ap("224.1.2.3:5")), sd.MulticastOption(ap("[ff14::5]:5")),
		sd.SDEndpointOption(ap("10.0.0.1:30490")), sd.LoadBalancingOption(1, 2),
		{Type: sd.OptionConfiguration, Data: []byte("\x03a=b\x00")},
		{Type: 0x77, Data: []byte{1, 2}},
	} {
		m := sd.Message{Options: []sd.Option{o}}
		b, err := m.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[30], b[31:])
	}
	for _, b := range discovery(f) {
		for m, _, err := sd.Parse(b); err == nil && len(m.Options) > 0; m.Options = m.Options[1:] {
			one := sd.Message{Options: m.Options[:1]}
			if b, err := one.Append(nil); err == nil {
				f.Add(b[30], b[31:])
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		if len(data) > 1000 {
			return
		}
		m := sd.Message{Session: 1}
		b, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		// Behind it one that every reader knows.
		after := []byte{0, 9, 4, 0, 10, 0, 0, 1, 0, 0x11, 0x77, 0x2D}
		size := 3 + len(data) + len(after)
		b[6], b[7] = byte((20+size)>>8), byte(20+size)
		b[26], b[27] = byte(size>>8), byte(size)
		b = append(b, byte(len(data)>>8), byte(len(data)), kind)
		b = append(append(b, data...), after...)
		got, _, err := sd.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Options) == 0 {
			if got.OptionErr == nil {
				t.Fatal("an option is lost without a word")
			}
			return
		}
		for item := range got.Options[0].Configuration() {
			if item == "" {
				t.Fatal("an empty item")
			}
		}
		if got.OptionErr != nil {
			return // the lengths do not fit, so nothing behind is read
		}
		if last := got.Options[len(got.Options)-1]; last.Endpoint != ap("10.0.0.1:30509") {
			t.Fatalf("%+v behind the option", last)
		}
	})
}
