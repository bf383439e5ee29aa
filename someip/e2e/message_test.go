package e2e_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
)

var event = someip.NewNotification(0x1234, 0x8777, 1, 1, []byte{1, 2, 3, 4})

// The whole messages of 12.3, the last one with the instance in the data id
// (case 107).
// E2E-1, E2E-5, E2E-11.
func TestCase107WholeMessages(t *testing.T) {
	plain := e2e.Config{Profile: e2e.P04, DataID: 0x000B0C0D}
	instance, err := plain.ForVsomeip(1)
	require.NoError(t, err)
	for _, tc := range []struct {
		config e2e.Config
		want   string
	}{
		{e2e.Config{Profile: e2e.P04, DataID: 0x0A0B0C0D}, "12348777 00000018 00000001 01010200 0018 0000 0a0b0c0d 68ac0a6f 01020304"},
		{plain, "12348777 00000018 00000001 01010200 0018 0000 000b0c0d 4b3f8451 01020304"},
		{instance, "12348777 00000018 00000001 01010200 0018 0000 010b0c0d bbb17e24 01020304"},
	} {
		want := unhex(t, tc.want)
		protector, err := e2e.NewProtector(tc.config)
		require.NoError(t, err)
		msg, err := protector.AppendMessage([]byte("ahead"), event)
		require.NoError(t, err)
		require.Equal(t, want, msg[5:])

		checker, err := e2e.NewChecker(tc.config)
		require.NoError(t, err)
		require.Equal(t, e2e.Result{Status: e2e.OK}, checker.CheckMessage(want))
		m, _, err := someip.ParseMessage(want)
		require.NoError(t, err)
		require.Equal(t, event.Payload, checker.Strip(m.Payload))

		// A peer that has room for the header in its payload makes the same bytes.
		placeholder := bytes.Clone(want)
		copy(placeholder[16:28], "placeholder!")
		require.NoError(t, protector.SetCounter(0))
		require.NoError(t, protector.ProtectMessage(placeholder))
		require.Equal(t, want, placeholder)
	}

	// Without the option the other side's data id is wrong, both ways.
	checker, err := e2e.NewChecker(plain)
	require.NoError(t, err)
	protector, err := e2e.NewProtector(instance)
	require.NoError(t, err)
	msg, err := protector.AppendMessage(nil, event)
	require.NoError(t, err)
	requireFault(t, checker.CheckMessage(msg), 20, e2e.ErrDataID)

	_, err = plain.ForVsomeip(256)
	var fault *e2e.ConfigError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, "P04Instance", fault.Field)
}

func requireFault(t *testing.T, r e2e.Result, offset int, reason error) {
	t.Helper()
	require.Equal(t, e2e.Error, r.Status)
	require.False(t, r.Usable())
	var fault *someip.ParseError
	require.ErrorAs(t, r.Err, &fault)
	require.ErrorIs(t, r.Err, reason)
	require.Equal(t, offset, fault.Offset)
}

// Every profile protects from the Request ID to the end of the message and
// nothing ahead of it (12.1), wherever the header stands in the payload.
// E2E-1.
func TestMessageRange(t *testing.T) {
	for _, profile := range profiles {
		for _, offset := range []int{0, 1, 4} {
			for _, start := range []int{0, 16} {
				config := e2e.Config{Profile: profile, Offset: offset, Start: start, DataIDList: counted(1)}
				if profile != e2e.P02 && profile != e2e.P22 {
					config.DataID = 0x123
				}
				protector, err := e2e.NewProtector(config)
				require.NoError(t, err)
				first := protector.Counter()
				msg, err := protector.AppendMessage(nil, event)
				require.NoError(t, err)

				m, rest, err := someip.ParseMessage(msg)
				require.NoError(t, err)
				require.Empty(t, rest)
				require.Len(t, m.Payload, len(event.Payload)+profile.HeaderSize())

				begin := 8
				if start != 0 {
					begin = start
				}
				for i := range msg {
					for bit := range 8 {
						checker, err := e2e.NewChecker(config)
						require.NoError(t, err)
						changed := bytes.Clone(msg)
						changed[i] ^= 1 << bit
						r := checker.CheckMessage(changed)
						require.Equal(t, i < begin, r.Usable(), "%v offset %d start %d byte %d bit %d: %v", profile, offset, start, i, bit, r.Err)
					}
				}

				checker, err := e2e.NewChecker(config)
				require.NoError(t, err)
				require.Equal(t, e2e.Result{Status: e2e.OK, Counter: first}, checker.CheckMessage(msg))
				require.Equal(t, event.Payload, checker.Strip(m.Payload))
			}
		}
	}
}

// Case 110: a message that ends within the header, or ahead of it, is an error.
// E2E-10.
func TestCase110ShortMessage(t *testing.T) {
	for _, profile := range profiles {
		config := e2e.Config{Profile: profile, Offset: 3}
		protector, err := e2e.NewProtector(config)
		require.NoError(t, err)
		msg, err := protector.AppendMessage(nil, event)
		require.NoError(t, err)
		checker, err := e2e.NewChecker(config)
		require.NoError(t, err)
		for size := range 16 + 3 + profile.HeaderSize() {
			short := bytes.Clone(msg[:size])
			requireFault(t, checker.CheckMessage(short[:size:size]), size, e2e.ErrShort)
			if size >= 8 {
				requireFault(t, checker.Check(short[:size-8][:min(size-8, 2+profile.HeaderSize())]), min(size-8, 2+profile.HeaderSize()), e2e.ErrShort)
			}
			require.ErrorIs(t, protector.ProtectMessage(short), e2e.ErrShort)
			require.Equal(t, msg[:size], short)
			if size >= 16 {
				require.Nil(t, checker.Strip(short[16:]))
			}
		}
		_, err = protector.AppendMessage(nil, someip.Message{Payload: []byte{1, 2}})
		require.ErrorIs(t, err, e2e.ErrShort)
		require.Equal(t, (firstCounter(profile)+1)%16, protector.Counter(), "failures do not count")
	}
}

func firstCounter(p e2e.Profile) uint32 {
	if p == e2e.P02 || p == e2e.P22 {
		return 1
	}
	return 0
}

// vsomeip's P01 protects the payload only (12.5).
// E2E-11.
func TestVsomeipP01(t *testing.T) {
	config, err := e2e.Config{Profile: e2e.P01, DataID: 0x123}.ForVsomeip(300)
	require.NoError(t, err)
	protector, err := e2e.NewProtector(config)
	require.NoError(t, err)
	m := event
	m.Payload = make([]byte, 6)
	msg, err := protector.AppendMessage(nil, m)
	require.NoError(t, err)
	require.Equal(t, unhex(t, "cc00000000000000"), msg[16:])
}

// P07 above 64 KiB: the length field and vsomeip's half of it.
// E2E-8, E2E-11.
func TestP07Length(t *testing.T) {
	long := event
	long.Payload = make([]byte, 0x12345)
	for _, tc := range []struct {
		truncated bool
		want      string
	}{{false, "00012361"}, {true, "00002361"}} {
		protector, err := e2e.NewProtector(e2e.Config{Profile: e2e.P07, P07Length16: tc.truncated})
		require.NoError(t, err)
		msg, err := protector.AppendMessage(nil, long)
		require.NoError(t, err)
		require.Equal(t, unhex(t, tc.want), msg[24:28])
		for _, truncated := range []bool{false, true} {
			checker, err := e2e.NewChecker(e2e.Config{Profile: e2e.P07, P07Length16: truncated})
			require.NoError(t, err)
			if r := checker.CheckMessage(msg); truncated == tc.truncated {
				require.Equal(t, e2e.OK, r.Status)
			} else {
				requireFault(t, r, 24, e2e.ErrLength)
			}
		}
	}
}
