package flows_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/peers"
	"carisma.dev/gateway/vehicles/run"
)

const grpcurlTimeout = 15 * time.Second

// grpcurl, with no .proto at hand and knowing only an egress listener, lists,
// describes, calls and watches everything.
func TestGrpcurl(t *testing.T) {
	grpcurl := peers.Need(t, peers.Grpcurl)[0]
	r := up(t, run.Options{})
	waitUp(t, r, "center")
	egress := r.Egress("center").String()
	ask := func(args ...string) string {
		t.Helper()
		out, errs, err := runCommand(t, grpcurlTimeout, append([]string{grpcurl, "-plaintext"}, args...)...)
		require.NoError(t, err, errs)
		return out
	}

	require.Equal(t, []string{"cabin.climate.v1.Climate", "cabin.trip.v1.TripComputer"}, cabinOnly(ask(egress, "list")))
	// With an authority the service itself answers.
	require.Equal(t, []string{"cabin.climate.v1.Climate"}, cabinOnly(ask("-authority", "left.cabin.climate.v1.climate", egress, "list")))
	require.Equal(t, []string{"cabin.trip.v1.TripComputer"}, cabinOnly(ask("-authority", "default.cabin.trip.v1.tripcomputer", egress, "list")))
	require.Contains(t, ask(egress, "describe", "cabin.climate.v1.Climate"), "rpc SetVents")
	require.Contains(t, ask(egress, "describe", "cabin.climate.v1.Vent"), "opening = 2")

	for _, instance := range []string{"left", "right"} {
		call := func(rpc, request string) string {
			t.Helper()
			return compact(t, ask("-authority", instance+".cabin.climate.v1.climate", "-d", request, egress, "cabin.climate.v1.Climate/"+rpc))
		}
		require.Contains(t, call("Describe", "{}"), `"zone":"`+instance+`"`)
		require.Equal(t, `{"moved":[2]}`, call("SetVents", `{"vents":[{"position":2,"opening":5}]}`))
		require.Equal(t, `{"previous":"MODE_AUTO"}`, call("SetMode", `{"mode":"MODE_COOL","reason":"test"}`))
		require.Equal(t, `{"granted":30}`, call("Boost", `{"seconds":30}`))
		require.Equal(t, `{}`, call("Purge", `{"strength":1}`))
		require.Equal(t, `{"celsius":21}`, call("GetTargetTemperature", "{}"))
		require.Equal(t, `{"celsius":22.5}`, call("SetTargetTemperature", `{"celsius":22.5}`))
	}
	// The header of an instance instead of an authority, and none of both.
	require.Contains(t, ask("-H", "carisma-instance: right", egress, "cabin.climate.v1.Climate/Describe"), `"right"`)
	require.Contains(t, ask("-d", `{"name":"holiday"}`, egress, "cabin.trip.v1.TripComputer/Leg"), "1280.25")

	// A watch lasts until its client leaves.
	out, _, err := runCommand(t, grpcurlTimeout, grpcurl, "-plaintext", "-max-time", "2", "-authority", "left.cabin.climate.v1.climate",
		egress, "cabin.climate.v1.Climate/WatchTargetTemperature")
	require.Error(t, err, "its deadline ends the watch")
	require.Contains(t, out, `"celsius": 22.5`)

	// An error says what it was on SOME/IP.
	_, errs, err := runCommand(t, grpcurlTimeout, grpcurl, "-plaintext", "-authority", "left.cabin.climate.v1.climate",
		"-d", `{"seconds":700}`, egress, "cabin.climate.v1.Climate/Boost")
	require.Error(t, err)
	require.Contains(t, errs, "BLOWER_BLOCKED")
	_, errs, err = runCommand(t, grpcurlTimeout, grpcurl, "-plaintext", egress, "cabin.nothing.v1.Nothing/Do")
	require.Error(t, err)
	require.Contains(t, errs, "cabin.nothing.v1.Nothing")
}

// cabinOnly returns the interfaces of the vehicle in a list.
func cabinOnly(list string) []string {
	var names []string
	for name := range strings.Lines(list) {
		if strings.HasPrefix(name, "cabin.") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}
