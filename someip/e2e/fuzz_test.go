package e2e_test

import (
	"bytes"
	"slices"
	"testing"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/internal/corpus"
)

// FuzzCheck gives a checker any bytes, and any message through a protector.
func FuzzCheck(f *testing.F) {
	for _, v := range vectors {
		f.Add(uint8(slices.Index(profiles, v.config.Profile)), uint8(v.config.Offset), append(make([]byte, v.at), unhex(f, v.want)...))
	}
	for i, profile := range profiles {
		protector, err := e2e.NewProtector(e2e.Config{Profile: profile})
		if err != nil {
			f.Fatal(err)
		}
		msg, err := protector.AppendMessage(nil, event)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), uint8(0), msg)
		f.Add(uint8(i), uint8(4), msg)
	}
	for i, b := range append(corpus.Texts(f, "vectors/autosar-e2e"), corpus.Texts(f, "vectors/vsomeip")...) {
		f.Add(uint8(i), uint8(0), b)
	}
	f.Fuzz(func(t *testing.T, selector, offset uint8, data []byte) {
		config := e2e.Config{
			Profile: profiles[int(selector)%len(profiles)], DataIDList: counted(1), Offset: int(offset),
			Strict: selector&0x80 != 0, P05CRCBigEndian: selector&0x40 != 0, P07Length16: selector&0x40 != 0,
		}
		checker, err := e2e.NewChecker(config)
		if err != nil {
			t.Fatal(err)
		}
		protector, err := e2e.NewProtector(config)
		if err != nil {
			t.Fatal(err)
		}

		before := bytes.Clone(data)
		for _, r := range []e2e.Result{checker.Check(data), checker.CheckMessage(data)} {
			if (r.Status == e2e.Error) != (r.Err != nil) || r.Status == e2e.NoNewData {
				t.Fatalf("%+v", r)
			}
		}
		if !bytes.Equal(before, data) {
			t.Fatal("a check changed the data")
		}

		// What passes the check is what the protector writes.
		checker.Reset()
		if r := checker.Check(data); r.Usable() {
			if err := protector.SetCounter(r.Counter); err != nil {
				t.Fatal(err)
			}
			if err := protector.Protect(data); err != nil || !bytes.Equal(before, data) {
				t.Fatalf("%v %x became %x", err, before, data)
			}
		}

		// Any parsed message that fits the length fields can be protected, is accepted, and comes back.
		m, _, err := someip.ParseMessage(data)
		if err != nil || len(m.Payload) < int(offset) || len(data) > 0xFF00 {
			return
		}
		msg, err := protector.AppendMessage(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		checker.Reset()
		if r := checker.CheckMessage(msg); !r.Usable() {
			t.Fatalf("%+v of %x", r, msg)
		}
		if got := checker.Strip(msg[someip.HeaderSize:]); !bytes.Equal(got, m.Payload) {
			t.Fatalf("%x became %x", m.Payload, got)
		}
	})
}
