package someip_test

import (
	"bytes"
	"testing"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/internal/corpus"
)

func FuzzParseMessage(f *testing.F) {
	f.Add(golden)
	f.Add([]byte(someip.ClientCookie))
	f.Add([]byte(someip.ServerCookie))
	f.Add(append(bytes.Clone(golden), golden...))
	for _, b := range corpus.Messages(f, 64, nil) {
		f.Add(b)
	}
	for _, length := range []byte{0, 7, 8, 0xFF} {
		b := bytes.Clone(golden)
		b[7] = length
		f.Add(b)
		b = bytes.Clone(golden)
		b[4], b[5], b[6], b[7] = 0xFF, 0xFF, 0xFF, 0xF0|length
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for rest := b; len(rest) > 0; {
			m, tail, err := someip.ParseMessage(rest)
			if err != nil {
				if tail != nil {
					t.Fatal("bytes behind an error")
				}
				return
			}
			if used := len(rest) - len(tail); !bytes.Equal(m.Append(nil), rest[:used]) || m.Size() != used {
				t.Fatalf("%x encodes as %x", rest[:used], m.Append(nil))
			}
			_ = m.Validate()
			rest = tail
		}
	})
}

func FuzzFindCookie(f *testing.F) {
	f.Add([]byte("junk"+someip.ClientCookie), []byte("more"))
	f.Add([]byte("junk"+someip.ClientCookie[:9]), []byte(someip.ClientCookie[9:]))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		// Looking at a stream in two reads finds what one read finds.
		all := append(bytes.Clone(first), second...)
		want, wantFound := someip.FindCookie(all, someip.ClientCookie)
		at, found := someip.FindCookie(first, someip.ClientCookie)
		if !found {
			n, f := someip.FindCookie(all[at:], someip.ClientCookie)
			at, found = at+n, f
		}
		if at != want || found != wantFound {
			t.Fatalf("got %d %v, want %d %v", at, found, want, wantFound)
		}
	})
}
