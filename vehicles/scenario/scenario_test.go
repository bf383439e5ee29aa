package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/vehicles"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func cabin(t *testing.T) *vehicles.Vehicle {
	t.Helper()
	v, err := vehicles.Load("../cabin")
	require.NoError(t, err)
	return v
}

func TestLoadCabin(t *testing.T) {
	s, err := Load("../cabin/scenario.yaml", cabin(t))
	require.NoError(t, err)
	require.Equal(t, "air", s.Steps[12].Watch.As)
	require.Equal(t, 10*time.Second, s.Steps[1].Within)
}

// Each mistake is reported with its place and what is allowed.
func TestMistakes(t *testing.T) {
	v := cabin(t)
	for name, c := range map[string]struct{ text, want string }{
		"no action":      {"[{name: a}]", ":2:9: steps[0]: the step has 0 actions; allowed: one of wait, call"},
		"two actions":    {"[{name: a, stop: cluster, kill: cluster}]", "the step has 2 actions"},
		"not JSON":       {"[{name: a, expect: {of: b, item: '[1]'}}]", "is no JSON object"},
		"bad expression": {"[{name: a, ends: {of: b, error: {code: OK, message: '('}}}]", "missing closing )"},
		"no answer":      {"[{name: a, call: {to: {host: rear, method: c.D/E}}}]", "the call has both or none of them"},
		"unknown key":    {"[{name: a, strat: b}]", `did you mean "start"?`},
		"no stream":      {"[{name: a, ends: {of: b, error: {code: OK}}}]", `:2:30: steps[0].ends.of: no stream is called "b"; allowed: the name of an earlier watch`},
		"stream later":   {"[{name: a, expect: {of: b, item: '{}'}}, {name: a, watch: {as: b, to: {host: rear, method: c.D/E}}}]", `:2:32: steps[0].expect.of: no stream`},
		"no calls":       {"[{name: a, finish: {of: b}}]", `steps[0].finish.of: no calls "b" are being made`},
		"never ended": {
			"[{name: a, repeat: {as: b, to: {host: rear, method: c.D/E}, response: '{}'}}]",
			`:2:32: steps[0].repeat.as: the calls "b" are never ended; allowed: a later step finish: {of: b}`,
		},
		"repeated twice": {
			"\n- {name: a, repeat: {as: b, to: {host: rear, method: c.D/E}, response: '{}'}}" +
				"\n- {name: a, repeat: {as: b, to: {host: rear, method: c.D/E}, response: '{}'}}\n- {name: a, finish: {of: b}}",
			`:4:26: steps[1].repeat.as: calls "b" are being made already`,
		},
		"no pause": {
			"\n- {name: a, repeat: {as: b, to: {host: rear, method: c.D/E}, response: '{}', every: 0s}}\n- {name: a, finish: {of: b}}",
			`:3:85: steps[0].repeat.every: "0s" is out of range; allowed: at least 1ms`,
		},
		"no host":      {"[{name: a, wait: {host: reer, up: [b]}}]", `:2:32: steps[0].wait.host: there is no HPC "reer"`},
		"an ECU":       {"[{name: a, list: {host: climate-ecu, services: [b]}}]", `there is no HPC "climate-ecu"`},
		"no program":   {"[{name: a, reboot: climate}]", `:2:27: steps[0].reboot: there is no program "climate"; allowed: the name of a component, or HPC/gateway`},
		"no node":      {"[{name: a, kill: rear/control-plane}]", `there is no program "rear/control-plane"`},
		"no component": {"[{name: a, add_service: {component: b, interface: c.v1.D}}]", `:2:44: steps[0].add_service.component: there is no component "b"`},
		"not of gRPC":  {"[{name: a, add_service: {component: cluster, interface: c.v1.D}}]", `the component "cluster" is no gRPC service of an HPC`},
		"no HPC":       {"[{name: a, remove_service: {host: x, service: y}}]", `there is no HPC "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.yaml")
			require.NoError(t, os.WriteFile(path, []byte("title: t\nsteps: "+c.text+"\n"), 0o600))
			_, err := Load(path, v)
			require.ErrorContains(t, err, c.want)
			require.Regexp(t, `s\.yaml:\d+:\d+: `, err.Error())
		})
	}
	_, err := Load("no/such/file", nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Programs of the nodes are there without being components.
func TestNodePrograms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	require.NoError(t, os.WriteFile(path, []byte("title: t\nsteps: [{name: a, kill: rear/gateway}, {name: b, reboot: center/control-plane}]\n"), 0o600))
	_, err := Load(path, cabin(t))
	require.NoError(t, err)
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
