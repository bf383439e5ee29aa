package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/someiptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lan is a SOME/IP network for commands.
type lan struct {
	*testing.T
	*someiptest.Domain
}

// command runs carisma someip on a host of the network.
func (l lan) command(ctx context.Context, host byte, in string, a ...string) (out string, err error) {
	l.Helper()
	root := newRoot()
	var stdout, stderr bytes.Buffer
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	root.SetIn(strings.NewReader(in))
	root.SetArgs(append([]string{
		"someip", a[0], "--address", l.Addr(host).String() + "/24",
		"--group", l.Group.String(), "--port", fmt.Sprint(l.Port), "--client-id", fmt.Sprint(0x1500 + int(host)),
	}, a[1:]...))
	err = root.ExecuteContext(ctx)
	return stdout.String() + stderr.String(), err
}

// ask runs a command that must succeed.
func (l lan) ask(a ...string) string {
	l.Helper()
	out, err := l.command(l.Context(), 9, "", a...)
	require.NoError(l, err, out)
	return out
}

const cabinInterfaces = "../../vehicles/cabin/interfaces"

// The commands of issue 4 speak with each other: a played service is found, called,
// read, written and watched, by its interface and by ids and bytes.
func TestSomeipByHand(t *testing.T) {
	l := lan{t, someiptest.NewDomain(t)}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var offered string
	running.Go(func() {
		var err error
		offered, err = l.command(ctx, 1, "", "offer", "-i", cabinInterfaces, "--instance", "left", "cabin.climate.v1.Climate",
			"--answer", `Boost={"granted":30}`, "--answer", `GetTargetTemperature={"celsius":21}`)
		if err != nil {
			t.Error(err, offered)
		}
	})
	typed := func(command, element string, rest ...string) string {
		return l.ask(append([]string{command, "-i", cabinInterfaces, "--instance", "left", "cabin.climate.v1.Climate/" + element}, rest...)...)
	}
	require.Equal(t, "{\"granted\":30}\n", typed("call", "Boost", `{"seconds":3}`))
	require.Equal(t, "{\"celsius\":21}\n", typed("get", "TargetTemperature"))
	require.Equal(t, "{\"celsius\":25}\n", typed("set", "TargetTemperature", `{"celsius":25}`))
	require.Equal(t, "{\"celsius\":25}\n", typed("watch", "WatchTargetTemperature", "-n", "1"))
	require.Empty(t, typed("call", "Purge", `{"strength":1}`))

	require.Equal(t, "001e\n", l.ask("call", "--hex", "4001.0001", "0004", "00 03"))
	require.Equal(t, "001e\n", l.ask("call", "--hex", "--tcp", "4001", "4", "0003"))
	require.Equal(t, "8002 41c80000\n", l.ask("watch", "--hex", "4001.0001", "0002", "8002", "-n", "1"))
	_, err := l.command(t.Context(), 9, "", "call", "--hex", "4001.0001", "0004", "00")
	require.ErrorContains(t, err, "E_MALFORMED_MESSAGE")
	_, err = l.command(t.Context(), 9, "", "watch", "--hex", "4001.0001", "0077")
	require.ErrorContains(t, err, "4001.0001 v1 refuses eventgroup 0077")

	found := l.ask("find", "4001", "-i", cabinInterfaces, "--wait", "1100ms")
	require.Regexp(t, `0x4001 +0x0001 +1\.2 .* cabin\.climate\.v1\.Climate +left`, found)
	require.Contains(t, l.ask("find", "-o", "json", "--wait", "1100ms"), `"instance": "0x0001"`)
	cancel()
	running.Wait()
	require.Contains(t, offered, `{"rpc":"Boost","peer":"`+l.Addr(9).String())
	require.Contains(t, offered, `"request":{"celsius":25}`)
	require.Contains(t, offered, "malformed")

	_, err = l.command(t.Context(), 9, "", "find", "--wait", "50ms")
	require.ErrorIs(t, err, exitError(statusFailed), "nothing is offered any more")
}

// An event is sent once somebody is there to get it.
func TestSomeipNotify(t *testing.T) {
	l := lan{t, someiptest.NewDomain(t)}
	c, err := l.Start(2).Client(runtime.InstanceKey{Service: 0x4001, Instance: 1, Major: 1})
	require.NoError(t, err)
	defer c.Close()
	got := make(chan string, 4)
	_, err = c.Subscribe(t.Context(), runtime.SubscribeConfig{
		Eventgroup: 1, Unreliable: true, OnEvent: func(n runtime.Notification) { got <- string(n.Payload) },
	})
	require.NoError(t, err)
	out, err := l.command(t.Context(), 1, "", "notify", "-i", cabinInterfaces, "--instance", "left",
		"cabin.climate.v1.Climate/AirQuality", "{}", "-n", "2", "--interval", "1ms")
	require.NoError(t, err, out)
	next := func() string {
		select {
		case payload := <-got:
			return payload
		case <-time.After(10 * time.Second):
			t.Fatal("an event is missing")
			return ""
		}
	}
	first := next()
	require.Equal(t, first, next())

	_, err = l.command(t.Context(), 1, "", "notify", "-i", cabinInterfaces, "--instance", "right",
		"cabin.climate.v1.Climate/AirQuality", "{}", "--timeout", "50ms")
	require.ErrorContains(t, err, "nobody subscribes to AirQuality")
}

func TestSomeipUsage(t *testing.T) {
	l := lan{t, someiptest.NewDomain(t)}
	for _, a := range [][]string{
		{"call", "--hex", "6001.0001"},
		{"call", "--hex", "x.y", "1"},
		{"call", "--hex", "6001.0001", "z"},
		{"call", "--hex", "6001.0001", "1", "0"},
		{"call", "cabin.climate.v1.Climate/Boost"},
		{"call", "-i", cabinInterfaces, "cabin.climate.v1.Climate"},
		{"watch", "--hex", "6001.0001"},
		{"watch", "-i", cabinInterfaces, "--instance", "left", "cabin.climate.v1.Climate/Nope"},
		{"set", "-i", cabinInterfaces, "--instance", "left", "cabin.climate.v1.Climate/Nope", "{}"},
		{"get", "-i", cabinInterfaces, "cabin.climate.v1.Climate/TargetTemperature"},
		{"offer", "-i", cabinInterfaces, "--instance", "left", "cabin.climate.v1.Climate", "--answer", "x"},
		{"find", "0"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := l.command(ctx, 1, "", a...)
		cancel()
		require.ErrorAs(t, err, new(usageError), a)
	}
}
