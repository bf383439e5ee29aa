package main

import (
	"context"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/payload"
	"carisma.dev/gateway/someip/runtime"
)

// Ids of the interface, as climate.proto deploys them.
const (
	serviceID = 0x4001
	major     = 1
	minor     = 2

	describeID   = 0x0001
	setVentsID   = 0x0002
	setModeID    = 0x0003
	boostID      = 0x0004
	purgeID      = 0x0005
	getTargetID  = 0x0010
	setTargetID  = 0x0011
	airQualityID = 0x8001
	targetID     = 0x8002

	airQualityGroup = 1
	targetGroup     = 2
)

type returnCode = someip.ReturnCode

const (
	ok            = someip.OK
	notOK         = someip.NotOK
	malformed     = someip.MalformedMessage
	blowerBlocked = returnCode(0x21)
	notInThisMode = returnCode(0x22)
)

// ports of the instances: two instances on one host need different ones.
func (z *zone) udpPort() uint16 { return 30508 + z.instance }
func (z *zone) tcpPort() uint16 { return 30508 + z.instance }

// offer makes the zone available.
func (z *zone) offer(n *runtime.Network) error {
	z.mu.Lock() // requests wait until the offering is known here
	offering, err := n.Offer(runtime.ServiceConfig{
		Service: serviceID, Instance: z.instance, Major: major, Minor: minor,
		UDPPort: z.udpPort(), TCPPort: z.tcpPort(),
		Methods: []runtime.MethodConfig{
			{ID: describeID},
			{ID: setVentsID},
			{ID: setModeID},
			{ID: boostID},
			{ID: purgeID, FireAndForget: true},
			{ID: getTargetID},
			{ID: setTargetID},
		},
		Events: []runtime.EventConfig{
			{ID: airQualityID, Eventgroups: []uint16{airQualityGroup}},
			{ID: targetID, Eventgroups: []uint16{targetGroup}, Field: true},
		},
		Handler: z,
	})
	z.offering = offering
	z.mu.Unlock()
	if err != nil {
		return err
	}
	return z.notifyTarget(z.targetTemperature())
}

// ServeSOMEIP answers a request at once.
func (z *zone) ServeSOMEIP(_ context.Context, r *runtime.Request) {
	in, out := payload.NewReader(r.Payload), payload.NewWriter(nil)
	code := z.serve(r.Method, in, out)
	if in.Err() != nil {
		code = malformed
	}
	if r.NoReturn {
		return
	}
	response, err := out.Payload()
	if err != nil {
		code = notOK
	}
	// An answer that cannot be sent is the client's time-out.
	if code != ok {
		_ = r.Fail(code, true, nil)
		return
	}
	_ = r.Respond(response)
}

func (z *zone) serve(method uint16, in *payload.Reader, out *payload.Writer) returnCode {
	switch method {
	case describeID:
		z.writeDescription(out)
	case setVentsID:
		vents := readVents(in)
		writePositions(out, moveVents(vents))
	case setModeID:
		mode := in.Uint8()
		_ = in.String(2, payload.PlainText) // the reason is for the log of a real ECU
		if in.Err() == nil {
			out.Uint8(z.setMode(mode))
		}
	case boostID:
		seconds := in.Uint16()
		if in.Err() != nil {
			return malformed
		}
		granted, failure := z.boost(seconds)
		out.Uint16(granted)
		return failure
	case purgeID:
		strength := in.Uint8()
		if in.Err() == nil {
			z.purge(strength)
			_ = z.sendAirQuality() // the next cycle sends it again
		}
	case getTargetID:
		out.Float32(z.targetTemperature())
	case setTargetID:
		celsius := in.Float32()
		if in.Err() != nil {
			return malformed
		}
		accepted := z.setTargetTemperature(celsius)
		out.Float32(accepted)
		_ = z.notifyTarget(accepted) // subscribers that cannot be reached time out
	}
	return ok
}
