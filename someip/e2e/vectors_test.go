package e2e_test

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/e2e"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(tb, err)
	return b
}

// counted is the DataIDList from, from+1, …
func counted(from byte) (ids [16]byte) {
	for i := range ids {
		ids[i] = from + byte(i)
	}
	return ids
}

type vector struct {
	config  e2e.Config
	size    int // of the data
	at      int // where want stands
	counter uint32
	want    string
}

func p01(p e2e.Profile, mode e2e.DataIDMode) e2e.Config {
	return e2e.Config{Profile: p, DataID: 0x123, DataIDMode: mode}
}

// The vectors of 12.3, over zeros.
var vectors = []vector{
	{p01(e2e.P01, e2e.Both), 8, 0, 0, "cc00 000000000000"},
	{p01(e2e.P01, e2e.Both), 8, 0, 1, "9101 000000000000"},
	{p01(e2e.P01, e2e.Alt), 8, 0, 0, "ce00 000000000000"},
	{p01(e2e.P01, e2e.Alt), 8, 0, 1, "0201 000000000000"},
	{p01(e2e.P01, e2e.Low), 8, 0, 0, "ce00 000000000000"},
	{p01(e2e.P01, e2e.Low), 8, 0, 1, "9301 000000000000"},
	{p01(e2e.P01, e2e.Nibble), 8, 0, 0, "2a10 000000000000"},
	{p01(e2e.P01, e2e.Nibble), 8, 0, 1, "7711 000000000000"},

	{e2e.Config{Profile: e2e.P02}, 8, 0, 1, "4501 000000000000"},
	{e2e.Config{Profile: e2e.P02, DataIDList: counted(1)}, 8, 0, 1, "1b01 000000000000"},
	{e2e.Config{Profile: e2e.P22, DataIDList: counted(1)}, 8, 0, 1, "1b01 000000000000"},
	{e2e.Config{Profile: e2e.P22, DataIDList: counted(1), Offset: 8}, 16, 8, 1, "1401 000000000000"},

	{e2e.Config{Profile: e2e.P04, DataID: 0x0A0B0C0D}, 16, 0, 0, "0010 0000 0a0b0c0d 862b0556 00000000"},
	{e2e.Config{Profile: e2e.P04, DataID: 0x0A0B0C0D, Offset: 8}, 24, 8, 0, "0018 0000 0a0b0c0d 69d7502e 00000000"},
	{e2e.Config{Profile: e2e.P44, DataID: 0x0A0B0C0D}, 16, 0, 0, "0010 0000 0a0b0c0d 862b0556 00000000"},
	{e2e.Config{Profile: e2e.P44, DataID: 0x0A0B0C0D, Offset: 8}, 24, 8, 0, "0018 0000 0a0b0c0d 69d7502e 00000000"},

	{e2e.Config{Profile: e2e.P05, DataID: 0x1234}, 8, 0, 0, "1cca 00 0000000000"},
	{e2e.Config{Profile: e2e.P05, DataID: 0x1234, P05CRCBigEndian: true}, 8, 0, 0, "ca1c 00 0000000000"},
	{e2e.Config{Profile: e2e.P05, DataID: 0x1234, Offset: 8}, 16, 8, 0, "2891 00 0000000000"},

	{e2e.Config{Profile: e2e.P06, DataID: 0x1234}, 8, 0, 0, "b155 0008 00 000000"},
	{e2e.Config{Profile: e2e.P06, DataID: 0x1234, Offset: 8}, 16, 8, 0, "4eb7 0010 00 000000"},

	{e2e.Config{Profile: e2e.P07, DataID: 0x0A0B0C0D}, 24, 0, 0, "1fb2e737fcedbcd9 00000018 00000000 0a0b0c0d 00000000"},
	{e2e.Config{Profile: e2e.P07, DataID: 0x0A0B0C0D, Offset: 8}, 32, 8, 0, "17f7c817323865a8 00000020 00000000 0a0b0c0d 00000000"},

	{p01(e2e.P11, e2e.Both), 8, 0, 0, "cc00 000000000000"},
	{p01(e2e.P11, e2e.Both), 8, 0, 1, "9101 000000000000"},
	{p01(e2e.P11, e2e.Nibble), 8, 0, 0, "2a10 000000000000"},
	{p01(e2e.P11, e2e.Nibble), 8, 0, 1, "7711 000000000000"},
	{e2e.Config{Profile: e2e.P11, DataID: 0x123, Offset: 8}, 16, 8, 0, "4100 000000000000"},
	{e2e.Config{Profile: e2e.P11, DataID: 0x123, DataIDMode: e2e.Nibble, Offset: 8}, 16, 8, 0, "7d10 000000000000"},
}

// E2E-3 to E2E-8.
func TestVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(fmt.Sprintf("%v/%d/%d/%d", v.config.Profile, v.config.DataIDMode, v.at, v.counter), func(t *testing.T) {
			want := append(make([]byte, v.at), unhex(t, v.want)...)
			protector, err := e2e.NewProtector(v.config)
			require.NoError(t, err)
			require.NoError(t, protector.SetCounter(v.counter))
			data := make([]byte, v.size)
			require.NoError(t, protector.Protect(data))
			require.Equal(t, want, data)

			checker, err := e2e.NewChecker(v.config)
			require.NoError(t, err)
			require.Equal(t, e2e.Result{Status: e2e.OK, Counter: v.counter}, checker.Check(data))
		})
	}
}

// P02 with data; the counter begins with 1 and is counted before each message.
// E2E-4.
func TestP02WithData(t *testing.T) {
	protector, err := e2e.NewProtector(e2e.Config{Profile: e2e.P02, DataIDList: counted(0)})
	require.NoError(t, err)
	for _, want := range []string{"6101020304050607", "bc02020304050607"} {
		data := []byte{0, 1, 2, 3, 4, 5, 6, 7}
		require.NoError(t, protector.Protect(data))
		require.Equal(t, unhex(t, want), data)
	}
}

// The first bytes of P22 over a whole turn of the counter.
// E2E-4.
func TestP22Counters(t *testing.T) {
	protector, err := e2e.NewProtector(e2e.Config{Profile: e2e.P22, DataIDList: counted(1)})
	require.NoError(t, err)
	var got []byte
	for range 16 {
		data := make([]byte, 8)
		require.NoError(t, protector.Protect(data))
		got = append(got, data[0])
	}
	require.Equal(t, unhex(t, "1b98310d189b65081d9e370b1e9dcd0e"), got)
	require.EqualValues(t, 1, protector.Counter())
}
