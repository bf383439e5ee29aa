package gateway_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/payload"
	"carisma.dev/gateway/someip/runtime"
)

// climate is one instance of Climate on the ECU, as climate.proto deploys it.
type climate struct {
	name     string
	offering *runtime.Offering

	mu     sync.Mutex
	target float32
	purged chan uint8
}

func offerClimate(t *testing.T, n *runtime.Network, name string, instance uint16) *climate {
	t.Helper()
	c := &climate{name: name, target: 21, purged: make(chan uint8, 8)}
	var err error
	port := freePorts(t, n.Address().Addr().String(), 1)[0]
	c.mu.Lock()
	c.offering, err = n.Offer(runtime.ServiceConfig{
		Service: 0x4001, Instance: instance, Major: 1, Minor: 2,
		UDPPort: port, TCPPort: port,
		Events: []runtime.EventConfig{
			{ID: 0x8001, Eventgroups: []uint16{1}},
			{ID: 0x8002, Eventgroups: []uint16{2}, Field: true},
		},
		Handler: c,
	})
	c.mu.Unlock()
	require.NoError(t, err)
	require.NoError(t, c.offering.Notify(0x8002, float(21)))
	return c
}

func float(v float32) []byte {
	w := payload.NewWriter(nil)
	w.Float32(v)
	b, _ := w.Payload()
	return b
}

// ServeSOMEIP answers a request.
func (c *climate) ServeSOMEIP(_ context.Context, r *runtime.Request) {
	in, out := payload.NewReader(r.Payload), payload.NewWriter(nil)
	switch r.Method {
	case 0x0001: // Describe
		out.String(4, payload.PlainText, c.name)
		out.Uint8(1)
		sensors := out.Begin(4)
		out.String(4, payload.PlainText, "roof")
		out.Float32(21.25)
		out.Bool(true)
		out.End(sensors)
		out.Uint16(258)
	case 0x0004: // Boost
		if in.Uint16() > 600 {
			_ = r.Fail(someip.ReturnCode(0x21), true, nil)
			return
		}
		out.Uint16(120)
	case 0x0005: // Purge
		c.purged <- in.Uint8()
		return
	case 0x0010:
		c.mu.Lock()
		out.Float32(c.target)
		c.mu.Unlock()
	case 0x0011:
		v := min(in.Float32(), 28)
		c.mu.Lock()
		c.target = v
		offering := c.offering
		c.mu.Unlock()
		out.Float32(v)
		_ = offering.Notify(0x8002, float(v))
	default:
		_ = r.Fail(someip.UnknownMethod, true, nil)
		return
	}
	b, err := out.Payload()
	if err != nil {
		_ = r.Fail(someip.NotOK, true, nil)
		return
	}
	_ = r.Respond(b)
}
