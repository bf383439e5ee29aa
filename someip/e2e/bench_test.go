package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
)

func TestNoAllocations(t *testing.T) {
	for _, profile := range profiles {
		protector, err := e2e.NewProtector(e2e.Config{Profile: profile})
		require.NoError(t, err)
		checker, err := e2e.NewChecker(e2e.Config{Profile: profile})
		require.NoError(t, err)
		b := make([]byte, 0, 256)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			msg, err := protector.AppendMessage(b, event)
			if err != nil || protector.ProtectMessage(msg) != nil || protector.Protect(msg) != nil {
				t.Fatal(err)
			}
			if msg, err = protector.AppendMessage(b, event); err != nil {
				t.Fatal(err)
			}
			if r := checker.CheckMessage(msg); r.Err != nil {
				t.Fatal(r)
			}
			if payload := checker.Strip(msg[someip.HeaderSize:]); len(payload) != len(event.Payload) {
				t.Fatal(payload)
			}
		}), profile)
	}
}

// The sizes are those of the protected data.
func benchmark(b *testing.B, run func(b *testing.B, config e2e.Config, data []byte)) {
	for _, profile := range profiles {
		for _, size := range []int{64, 1024, 64<<10 - 1} {
			b.Run(fmt.Sprintf("%v/%d", profile, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				run(b, e2e.Config{Profile: profile, Offset: 8, MaxDelta: 1}, make([]byte, size))
			})
		}
	}
}

func BenchmarkProtect(b *testing.B) {
	benchmark(b, func(b *testing.B, config e2e.Config, data []byte) {
		protector, err := e2e.NewProtector(config)
		require.NoError(b, err)
		for b.Loop() {
			if err := protector.Protect(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	benchmark(b, func(b *testing.B, config e2e.Config, data []byte) {
		protector, err := e2e.NewProtector(config)
		require.NoError(b, err)
		require.NoError(b, protector.Protect(data))
		checker, err := e2e.NewChecker(config)
		require.NoError(b, err)
		for b.Loop() {
			if r := checker.Check(data); r.Err != nil {
				b.Fatal(r.Err)
			}
		}
	})
}
