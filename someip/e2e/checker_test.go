package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/e2e"
)

var profiles = []e2e.Profile{e2e.P01, e2e.P02, e2e.P04, e2e.P05, e2e.P06, e2e.P07, e2e.P11, e2e.P22, e2e.P44}

// maxCounter is the last value before the counter starts again at 0.
var maxCounter = map[e2e.Profile]uint32{
	e2e.P01: 14, e2e.P11: 14, e2e.P02: 15, e2e.P22: 15, e2e.P05: 255, e2e.P06: 255,
	e2e.P04: 0xFFFF, e2e.P44: 0xFFFF, e2e.P07: 0xFFFFFFFF,
}

// stream checks messages with chosen counters.
type stream struct {
	t         *testing.T
	protector *e2e.Protector
	checker   *e2e.Checker
}

func newStream(t *testing.T, c e2e.Config) *stream {
	t.Helper()
	protector, err := e2e.NewProtector(c)
	require.NoError(t, err)
	checker, err := e2e.NewChecker(c)
	require.NoError(t, err)
	return &stream{t, protector, checker}
}

func (s *stream) message(counter uint32) []byte {
	s.t.Helper()
	require.NoError(s.t, s.protector.SetCounter(counter))
	data := make([]byte, 24)
	require.NoError(s.t, s.protector.Protect(data))
	return data
}

func (s *stream) want(counter uint32, status e2e.Status, lost uint32) {
	s.t.Helper()
	want := e2e.Result{Status: status, Counter: counter, Lost: lost}
	require.Equal(s.t, want, s.checker.Check(s.message(counter)))
	require.Equal(s.t, want, s.checker.Last())
}

// 12.4 for every profile, across the wrap of its counter.
// E2E-9.
func TestSequence(t *testing.T) {
	for _, profile := range profiles {
		last := maxCounter[profile]
		t.Run(profile.String(), func(t *testing.T) {
			s := newStream(t, e2e.Config{Profile: profile, MaxDelta: 3})
			require.Equal(t, e2e.NoNewData, s.checker.Last().Status)
			s.want(last-4, e2e.OK, 0) // the first message may have any counter
			s.want(last-3, e2e.OK, 0)
			s.want(last-3, e2e.Repeated, 0)
			s.want(last-1, e2e.OKSomeLost, 1)
			s.want(1, e2e.OKSomeLost, 2)
			s.want(0, e2e.WrongSequence, 0) // one too old
			s.want(1, e2e.OK, 0)
			s.want(5, e2e.WrongSequence, 0) // delta 4
			s.want(6, e2e.OK, 0)

			// A bad checksum changes nothing.
			bad := s.message(9)
			bad[23] ^= 1
			require.ErrorIs(t, s.checker.Check(bad).Err, e2e.ErrCRC)
			require.Equal(t, e2e.Result{}, s.checker.NoData())
			require.Equal(t, e2e.NoNewData, s.checker.Last().Status)
			s.want(7, e2e.OK, 0)

			s.checker.Reset()
			s.want(2, e2e.OK, 0)

			require.NoError(t, s.protector.SetCounter(last))
			require.NoError(t, s.protector.Protect(make([]byte, 24)))
			require.Zero(t, s.protector.Counter())
			if last != 0xFFFFFFFF {
				require.ErrorIs(t, s.protector.SetCounter(last+1), e2e.ErrCounter)
			}
		})
	}
}

// By default what is not older is accepted.
func TestDefaultMaxDelta(t *testing.T) {
	s := newStream(t, e2e.Config{Profile: e2e.P04})
	s.want(0xFFF0, e2e.OK, 0)
	s.want(0x7FF0, e2e.OKSomeLost, 0x7FFF)
	s.want(0xFFF1, e2e.WrongSequence, 0)
}

// Case 109: an old valid message is rejected; its successor is accepted after it,
// unless the checker is strict.
// E2E-12.
func TestCase109Replay(t *testing.T) {
	for _, profile := range []e2e.Profile{e2e.P04, e2e.P07} {
		s := newStream(t, e2e.Config{Profile: profile, MaxDelta: 5})
		s.want(100, e2e.OK, 0)
		s.want(20, e2e.WrongSequence, 0)
		s.want(21, e2e.OK, 0)

		s = newStream(t, e2e.Config{Profile: profile, MaxDelta: 5, Strict: true})
		s.want(100, e2e.OK, 0)
		s.want(20, e2e.WrongSequence, 0)
		s.want(21, e2e.WrongSequence, 0)
		s.want(100, e2e.Repeated, 0)
		s.want(101, e2e.OK, 0)
		s.checker.Reset() // the sender has restarted
		s.want(0, e2e.OK, 0)
	}
}

// The faults that are not the checksum's, where a header shows them.
// E2E-9.
func TestHeaderFaults(t *testing.T) {
	for _, tc := range []struct {
		config e2e.Config
		change int // this byte
		to     byte
		offset int // reported
		reason error
	}{
		{e2e.Config{Profile: e2e.P01}, 1, 0x0F, 1, e2e.ErrCounter},
		{e2e.Config{Profile: e2e.P11, DataIDMode: e2e.Nibble}, 1, 0x30, 1, e2e.ErrDataID},
		{e2e.Config{Profile: e2e.P04}, 0, 0x3F, 0, e2e.ErrLength},
		{e2e.Config{Profile: e2e.P04}, 7, 0x3F, 4, e2e.ErrDataID},
		{e2e.Config{Profile: e2e.P06}, 3, 0x3F, 2, e2e.ErrLength},
		{e2e.Config{Profile: e2e.P07}, 11, 0x3F, 8, e2e.ErrLength},
		{e2e.Config{Profile: e2e.P44}, 4, 0x3F, 4, e2e.ErrDataID},
		{e2e.Config{Profile: e2e.P07}, 19, 0x3F, 16, e2e.ErrDataID},
		{e2e.Config{Profile: e2e.P05}, 2, 0x3F, 0, e2e.ErrCRC},
	} {
		s := newStream(t, tc.config)
		data := s.message(0)
		data[tc.change] = tc.to
		requireFault(t, s.checker.Check(data), tc.offset, tc.reason)
	}
}

// Bits beside a counter of four bits belong to the application.
// E2E-3, E2E-4.
func TestNeighbourNibble(t *testing.T) {
	for _, profile := range []e2e.Profile{e2e.P01, e2e.P02, e2e.P11, e2e.P22} {
		s := newStream(t, e2e.Config{Profile: profile})
		require.NoError(t, s.protector.SetCounter(3))
		data := []byte{0, 0xA7, 1, 2}
		require.NoError(t, s.protector.Protect(data))
		require.EqualValues(t, 0xA3, data[1])
		require.Equal(t, e2e.Result{Status: e2e.OK, Counter: 3}, s.checker.Check(data))
	}
}

func TestLengthLimits(t *testing.T) {
	s := newStream(t, e2e.Config{Profile: e2e.P05, MinLength: 8, MaxLength: 16})
	for size, want := range map[int]error{3: e2e.ErrShort, 7: e2e.ErrShort, 8: nil, 16: nil, 17: e2e.ErrLong} {
		data := make([]byte, size)
		require.ErrorIs(t, s.protector.Protect(data), want)
		if want != nil {
			requireFault(t, s.checker.Check(data), size, want)
		}
	}
	for _, profile := range []e2e.Profile{e2e.P04, e2e.P06, e2e.P44} {
		s := newStream(t, e2e.Config{Profile: profile, MaxLength: 1 << 20})
		require.NoError(t, s.protector.Protect(make([]byte, 0xFFFF)))
		require.ErrorIs(t, s.protector.Protect(make([]byte, 0x10000)), e2e.ErrLong, "the length field has 16 bits")
		requireFault(t, s.checker.Check(make([]byte, 0x10000)), 0x10000, e2e.ErrLong)
	}
}

func TestConfigFaults(t *testing.T) {
	for _, tc := range []struct {
		config e2e.Config
		field  string
	}{
		{e2e.Config{}, "Profile"},
		{e2e.Config{Profile: 3}, "Profile"},
		{e2e.Config{Profile: e2e.P05, DataID: 0x10000}, "DataID"},
		{e2e.Config{Profile: e2e.P02, DataID: 1}, "DataID"},
		{e2e.Config{Profile: e2e.P01, DataID: 0x1234, DataIDMode: e2e.Nibble}, "DataID"},
		{e2e.Config{Profile: e2e.P01, DataIDMode: 4}, "DataIDMode"},
		{e2e.Config{Profile: e2e.P11, DataIDMode: e2e.Alt}, "DataIDMode"},
		{e2e.Config{Profile: e2e.P04, DataIDMode: e2e.Low}, "DataIDMode"},
		{e2e.Config{Profile: e2e.P04, Offset: -1}, "Offset"},
		{e2e.Config{Profile: e2e.P04, Start: 4}, "Start"},
		{e2e.Config{Profile: e2e.P04, Start: 17}, "Start"},
		{e2e.Config{Profile: e2e.P04, MinLength: -1}, "MinLength"},
		{e2e.Config{Profile: e2e.P04, MinLength: 9, MaxLength: 8}, "MaxLength"},
		{e2e.Config{Profile: e2e.P01, MaxDelta: 15}, "MaxDelta"},
		{e2e.Config{Profile: e2e.P07, P04Instance: 1}, "P04Instance"},
	} {
		var fault *e2e.ConfigError
		_, err := e2e.NewProtector(tc.config)
		require.ErrorAs(t, err, &fault)
		require.Equal(t, tc.field, fault.Field, err)
		require.Contains(t, err.Error(), "e2e: "+tc.field+": ")
		_, err = e2e.NewChecker(tc.config)
		require.ErrorAs(t, err, &fault)
	}
	_, err := e2e.Config{Profile: e2e.P06}.ForVsomeip(1)
	require.ErrorContains(t, err, "vsomeip has no P06")
}
