package e2e_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/tp"
)

// TP-12: the header protects the whole message, so it is added before segmentation
// and checked after reassembly; no segment has one of its own.
func TestSegmentedMessage(t *testing.T) {
	path := tp.Path{From: netip.MustParseAddrPort("10.0.0.1:30509"), To: netip.MustParseAddrPort("10.0.0.2:40000")}
	for _, profile := range []e2e.Profile{e2e.P04, e2e.P07} {
		config := e2e.Config{Profile: profile, DataID: 0x2D}
		protector, err := e2e.NewProtector(config)
		require.NoError(t, err)
		checker, err := e2e.NewChecker(config)
		require.NoError(t, err)
		want := someip.NewNotification(0x1234, 0x8777, 1, 1, make([]byte, 5000))
		for i := range want.Payload {
			want.Payload[i] = byte(i * 7)
		}
		protected, err := protector.AppendMessage(nil, want)
		require.NoError(t, err)
		whole, _, err := someip.ParseMessage(protected)
		require.NoError(t, err)

		segments, err := tp.Rule{}.Segment(whole)
		require.NoError(t, err)
		r := tp.NewReassembler(tp.Config{})
		var rebuilt []byte
		for more := true; more; {
			var b []byte
			b, more = segments.Append(nil)
			part, _, err := someip.ParseMessage(b)
			require.NoError(t, err)
			require.Nil(t, rebuilt)
			rebuilt, err = r.Receive(time.Time{}, path, part)
			require.NoError(t, err)
		}
		require.Equal(t, protected, rebuilt)
		require.Equal(t, e2e.OK, checker.CheckMessage(rebuilt).Status)
		got, _, err := someip.ParseMessage(rebuilt)
		require.NoError(t, err)
		require.Equal(t, want.Payload, checker.Strip(got.Payload))

		rebuilt[len(rebuilt)-1] ^= 1 // of the last segment
		require.Equal(t, e2e.Error, checker.CheckMessage(rebuilt).Status)
	}
}
