package someipadapter_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
)

// ecu plays instance left of cabin.climate.v1.Climate. It writes and reads its
// payloads by hand, so that translation is judged by other code than its own.
type ecu struct {
	offering *runtime.Offering
	requests atomic.Int32
	garbage  atomic.Bool // answer what cannot be decoded
}

// text is a string as the interface deploys it: length, BOM, terminator.
func text(s string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(s)+4))
	b = append(b, 0xEF, 0xBB, 0xBF)
	return append(append(b, s...), 0)
}

func float(f float32) []byte { return binary.BigEndian.AppendUint32(nil, math.Float32bits(f)) }

func concat(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func airQuality(co2 uint16) []byte {
	samples := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, co2), co2+1)
	return concat(binary.BigEndian.AppendUint16(nil, co2), float(12.5), text("left"), []byte{0, 0, 0, 4}, samples)
}

func newECU(n *runtime.Network) (*ecu, error) {
	e := &ecu{}
	var err error
	e.offering, err = n.Offer(runtime.ServiceConfig{
		Service: 0x4001, Instance: 1, Major: 1, Minor: 2,
		UDPPort: runtime.AutoPort, TCPPort: runtime.AutoPort,
		Events: []runtime.EventConfig{
			{ID: 0x8001, Eventgroups: []uint16{1}},
			{ID: 0x8002, Eventgroups: []uint16{2}, Field: true},
		},
		Methods: []runtime.MethodConfig{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}, {ID: 5, FireAndForget: true}, {ID: 0x10}, {ID: 0x11}},
		Handler: runtime.HandlerFunc(e.serve),
	})
	if err != nil {
		return nil, err
	}
	return e, e.offering.SetField(0x8002, float(21))
}

func (e *ecu) serve(_ context.Context, r *runtime.Request) {
	e.requests.Add(1)
	if e.garbage.Load() {
		_ = r.Respond([]byte{0xff})
		return
	}
	switch r.Method {
	case 1:
		sensor := concat(text("roof"), float(21.25), []byte{1})
		length := binary.BigEndian.AppendUint32(nil, uint32(len(sensor)))
		_ = r.Respond(concat(text("left"), []byte{1}, length, sensor, []byte{0x01, 0x02}))
	case 2: // the positions of vents opened by at most 100, over TCP
		moved := []byte{0}
		for b := r.Payload[2:]; len(b) > 0; b = b[6:] { // length, position, opening, direction
			if b[3] <= 100 {
				moved = append(moved, b[2])
				moved[0]++
			}
		}
		_ = r.Respond(moved)
	case 3: // never answered
	case 4:
		if seconds := binary.BigEndian.Uint16(r.Payload); seconds > 600 {
			_ = r.Fail(0x21, true, nil)
		} else if seconds == 0 {
			_ = r.Fail(someip.NotOK, true, nil)
		} else {
			_ = r.Respond(r.Payload)
		}
	case 5:
		_ = e.offering.Notify(0x8001, airQuality(400+uint16(r.Payload[0])))
	case 0x10:
		_ = r.Respond(float(21))
	case 0x11:
		value := append([]byte(nil), r.Payload...)
		_ = r.Respond(value)
		_ = e.offering.Notify(0x8002, value)
	}
}

// ecuProcess is the environment variable that makes the test binary an ECU, on
// the domain that it names.
const ecuProcess = "CARISMA_TEST_ECU"

func runECUProcess(where string) {
	var d domain
	_, err := fmt.Sscanf(where, "%d.%d:%d", &d.part, &d.net, &d.port)
	var s *runtime.Stack
	if err == nil {
		s, err = d.start(2)
	}
	if err == nil {
		_, err = newECU(s.Network("ecu"))
	}
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	select {}
}

// ecuOnItsOwn starts an ECU as a process and returns how to kill it.
func (d domain) ecuOnItsOwn(t *testing.T) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d.%d:%d", ecuProcess, d.part, d.net, d.port))
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	var dead bool
	kill = func() {
		if !dead {
			dead = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	return kill
}
