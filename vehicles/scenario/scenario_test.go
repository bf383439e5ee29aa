package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/codegen/protos/carismav1"
)

func TestLoadCabin(t *testing.T) {
	s, err := Load("../cabin/scenario.yaml")
	require.NoError(t, err)
	require.Equal(t, "air", s.Steps[12].Watch.As)
	require.Equal(t, 10*time.Second, s.Steps[1].Within)
}

func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no action":      {"steps: [{name: a}]", ":2:9: steps[0]: the step has 0 actions; allowed: one of wait, call"},
		"two actions":    {"steps: [{name: a, stop: b, kill: c}]", "the step has 2 actions"},
		"not JSON":       {"steps: [{name: a, expect: {of: b, item: '[1]'}}]", "is no JSON object"},
		"bad expression": {"steps: [{name: a, ends: {of: b, error: {code: OK, message: '('}}}]", "missing closing )"},
		"no answer":      {"steps: [{name: a, call: {to: {host: b, method: c.D/E}}}]", "the call has both or none of them"},
		"unknown key":    {"steps: [{name: a, strat: b}]", `did you mean "start"?`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.yaml")
			require.NoError(t, os.WriteFile(path, []byte("title: t\n"+c.text+"\n"), 0o600))
			_, err := Load(path)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := Load("no/such/file")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestHasMembers(t *testing.T) {
	item := `{"a":1,"b":{"c":"x","d":[1,2]}}`
	for want, holds := range map[string]bool{
		`{}`: true, `{"a":1}`: true, `{"a":2}`: false, `{"b":{"c":"x"}}`: true, `{"b":{"d":[1]}}`: false,
		`{"b":{"d":[1,2]}}`: true, `{"e":null}`: true, `{"a":{"b":1}}`: false,
	} {
		require.Equal(t, holds, hasMembers(item, want), want)
	}
}

func TestErrorCheck(t *testing.T) {
	since := timestamppb.New(time.Unix(1, 0))
	s, err := status.New(codes.Unavailable, "left is gone").WithDetails(&carismav1.ErrorDetail{Reason: "StopOffer", Since: since})
	require.NoError(t, err)
	re := func(s string) (r Regexp) { require.NoError(t, r.compile(s)); return r }

	text, err := (&Error{Code: "UNAVAILABLE", Reason: re("^Stop")}).check(s.Err())
	require.NoError(t, err)
	require.Equal(t, "UNAVAILABLE, because StopOffer, since a time", text)
	for _, e := range []*Error{
		{Code: "INTERNAL"},
		{Code: "UNAVAILABLE", Reason: re("TTL")},
		{Code: "UNAVAILABLE", Message: re("right")},
		{Code: "UNAVAILABLE", ReturnCode: 1},
		{Code: "UNAVAILABLE", FieldPath: "a"},
		{Code: "UNAVAILABLE", Application: "A"},
	} {
		_, err := e.check(s.Err())
		require.ErrorContains(t, err, `got UNAVAILABLE "left is gone"`)
	}
	_, err = (&Error{Code: "UNAVAILABLE"}).check(nil)
	require.ErrorContains(t, err, "no error")
	_, err = (&Error{Code: "UNKNOWN"}).check(errors.New("not a status"))
	require.Error(t, err)
}

func TestCodeName(t *testing.T) {
	for c, want := range map[codes.Code]string{
		codes.OK: "OK", codes.Canceled: "CANCELLED", codes.InvalidArgument: "INVALID_ARGUMENT", codes.DeadlineExceeded: "DEADLINE_EXCEEDED",
	} {
		require.Equal(t, want, codeName(c))
	}
}
