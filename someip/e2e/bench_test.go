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

// run measures an operation of each profile on protected data of several sizes.
func run(b *testing.B, prepare func(c e2e.Config, data []byte) func() error) {
	b.Helper()
	for _, profile := range profiles {
		for _, size := range []int{64, 1024, 64<<10 - 1} {
			b.Run(fmt.Sprintf("%v/%d", profile, size), func(b *testing.B) {
				operation := prepare(e2e.Config{Profile: profile, Offset: 8}, make([]byte, size))
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if err := operation(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkProtect(b *testing.B) {
	run(b, func(c e2e.Config, data []byte) func() error {
		protector, err := e2e.NewProtector(c)
		require.NoError(b, err)
		return func() error { return protector.Protect(data) }
	})
}

func BenchmarkCheck(b *testing.B) {
	run(b, func(c e2e.Config, data []byte) func() error {
		protector, err := e2e.NewProtector(c)
		require.NoError(b, err)
		require.NoError(b, protector.Protect(data))
		checker, err := e2e.NewChecker(c)
		require.NoError(b, err)
		return func() error { return checker.Check(data).Err }
	})
}
