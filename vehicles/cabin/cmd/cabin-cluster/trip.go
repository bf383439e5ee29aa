package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/payload"
	"carisma.dev/gateway/someip/runtime"
)

// Ids of the interface, as trip.proto deploys them.
const (
	serviceID  = 0x5001
	instanceID = 0x0001
	major      = 1

	legID            = 0x0001
	averageID        = 0x0002
	consumptionID    = 0x8001
	consumptionGroup = 1
)

var speedClasses = []string{"CITY", "ROAD", "HIGHWAY"}

// events are how many consumption events the cluster waits for.
const events = 3

// tripClient uses the trip computer over SOME/IP.
type tripClient struct{ client *runtime.Client }

func newTripClient(n *runtime.Network) (*tripClient, error) {
	c, err := n.Client(runtime.InstanceKey{Service: serviceID, Instance: instanceID, Major: major})
	if err != nil {
		return nil, err
	}
	return &tripClient{c}, nil
}

func (t *tripClient) close() { t.client.Close() }

// find waits until the instance is offered.
func (t *tripClient) find(ctx context.Context) (string, error) {
	if err := t.client.Await(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("found 0x%04x.0x%04x", serviceID, instanceID), nil
}

// call returns a reader of the answer's payload, or its return code.
func (t *tripClient) call(ctx context.Context, method uint16, reliable bool, in *payload.Writer) (*payload.Reader, someip.ReturnCode, error) {
	request, err := in.Payload()
	if err != nil {
		return nil, 0, err
	}
	response, err := t.client.Call(ctx, method, reliable, request)
	if err != nil {
		return nil, 0, fmt.Errorf("method 0x%04x: %w", method, err)
	}
	return payload.NewReader(response.Payload), response.Code, nil
}

func (t *tripClient) leg(ctx context.Context, name string) (string, error) {
	in := payload.NewWriter(nil)
	in.String(4, payload.PlainText, name)
	out, code, err := t.call(ctx, legID, false, in)
	if err != nil {
		return "", err
	}
	if name == "" {
		name = "(empty)"
	}
	if code != someip.OK {
		return fmt.Sprintf("leg %s: return code 0x%02x", name, uint8(code)), nil
	}
	kilometres := out.Float64()
	var waypoints []string
	list := out.Begin(4)
	for out.More() {
		waypoints = append(waypoints, out.String(4, payload.PlainText))
	}
	out.End(list)
	return fmt.Sprintf("leg %s: %g km by %s", name, kilometres, strings.Join(waypoints, ", ")), out.Err()
}

func (t *tripClient) average(ctx context.Context, speeds ...uint16) (string, error) {
	in := payload.NewWriter(nil)
	list := in.Begin(4)
	var words []string
	for _, v := range speeds {
		in.Uint16(v)
		words = append(words, strconv.Itoa(int(v)))
	}
	in.End(list)
	out, code, err := t.call(ctx, averageID, true, in)
	if err != nil {
		return "", err
	}
	if len(words) == 0 {
		words = []string{"(none)"}
	}
	if code != someip.OK {
		return fmt.Sprintf("average %s: return code 0x%02x", strings.Join(words, " "), uint8(code)), nil
	}
	mean, class := out.Float32(), int(out.Uint8())
	if out.Err() == nil && class >= len(speedClasses) {
		return "", fmt.Errorf("average: speed class %d is unknown", class)
	}
	return fmt.Sprintf("average %s: %g %s", strings.Join(words, " "), mean, speedClasses[class]), out.Err()
}

type consumption struct {
	litres float32
	km     uint16
	err    error
}

// consumption waits for some events in a row.
func (t *tripClient) consumption(ctx context.Context) (string, error) {
	received := make(chan consumption, events)
	s, err := t.client.Subscribe(ctx, runtime.SubscribeConfig{
		Eventgroup: consumptionGroup,
		Events:     []uint16{consumptionID},
		OnEvent: func(n runtime.Notification) {
			in := payload.NewReader(n.Payload)
			c := consumption{litres: in.Float32(), km: in.Uint16()}
			c.err = in.Err()
			select {
			case received <- c:
			default: // enough seen
			}
		},
	})
	if err != nil {
		return "", err
	}
	defer s.Close()
	var last consumption
	for i := range events {
		select {
		case c := <-received:
			if c.err != nil {
				return "", c.err
			}
			if i > 0 && c.km != below(last.km) {
				return "", fmt.Errorf("consumption: range %d km follows %d km", c.km, last.km)
			}
			last = c
		case <-ctx.Done():
			return "", fmt.Errorf("consumption: %d of %d events: %w", i, events, ctx.Err())
		}
	}
	return fmt.Sprintf("consumption: %d events, %g l/100 km, range falling", events, last.litres), nil
}

// below is the range that follows one.
func below(km uint16) uint16 {
	if km == 500 {
		return 600
	}
	return km - 1
}
