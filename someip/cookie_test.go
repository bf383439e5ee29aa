package someip_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
)

// CK-1, CK-2.
func TestCookies(t *testing.T) {
	for _, cookie := range []string{someip.ClientCookie, someip.ServerCookie} {
		m, rest, err := someip.ParseMessage([]byte(cookie))
		require.NoError(t, err)
		require.Empty(t, rest)
		require.NoError(t, m.Validate())
		require.Equal(t, someip.ServiceSD, m.Service)
		require.EqualValues(t, 0xDEAD, m.Client)
		require.EqualValues(t, 0xBEEF, m.Session)
		require.True(t, someip.IsCookie([]byte(cookie+"more")))
		require.False(t, someip.IsCookie([]byte(cookie[:15])))
		require.False(t, m.MayAnswer())
	}
	require.False(t, someip.IsCookie(golden))
}

// CK-3.
func TestFindCookie(t *testing.T) {
	for _, tc := range []struct {
		name, stream string
		at           int
		found        bool
	}{
		{"at the start", someip.ClientCookie + "x", 0, true},
		{"behind junk", "junk" + someip.ClientCookie, 4, true},
		{"behind half a cookie", someip.ClientCookie[:9] + someip.ClientCookie, 9, true},
		{"of the other side only", someip.ServerCookie, 16, false},
		{"none", "junkjunkjunkjunkjunk", 20, false},
		{"cut off", "junk" + someip.ClientCookie[:15], 4, false},
		{"only its first byte", "junk\xff", 4, false},
		{"empty", "", 0, false},
	} {
		at, found := someip.FindCookie([]byte(tc.stream), someip.ClientCookie)
		require.Equal(t, tc.found, found, tc.name)
		require.Equal(t, tc.at, at, tc.name)
	}
}
