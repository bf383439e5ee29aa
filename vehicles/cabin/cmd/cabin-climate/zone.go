package main

import (
	"sync"

	"carisma.dev/gateway/someip/payload"
	"carisma.dev/gateway/someip/runtime"
)

// Values of the enumeration Mode.
const (
	modeOff  = 0
	modeAuto = 1
)

type sensor struct {
	name    string
	celsius float32
}

// zone is the climate control of one side. The comments in climate.proto say
// how it behaves.
type zone struct {
	name     string
	instance uint16
	sensors  []sensor

	mu       sync.Mutex
	offering *runtime.Offering
	mode     uint8
	target   float32
	co2      uint16
}

const softwareVersion = 258

func newZone(name string, instance uint16, sensors ...sensor) *zone {
	return &zone{name: name, instance: instance, sensors: sensors, mode: modeAuto, target: 21, co2: 800}
}

func newLeft() *zone {
	return newZone("left", 1, sensor{"footwell", 19.5}, sensor{"roof", 21.25})
}

func newRight() *zone {
	return newZone("right", 2, sensor{"footwell", 18.5})
}

type vent struct {
	position, opening uint8
	direction         uint16
}

// moveVents returns the positions of the vents that could be moved.
func moveVents(vents []vent) (moved []uint8) {
	for _, v := range vents {
		if v.opening <= 100 {
			moved = append(moved, v.position)
		}
	}
	return moved
}

// setMode returns the mode before.
func (z *zone) setMode(mode uint8) uint8 {
	z.mu.Lock()
	defer z.mu.Unlock()
	before := z.mode
	z.mode = mode
	return before
}

// boost returns the seconds granted, or an error's return code.
func (z *zone) boost(seconds uint16) (granted uint16, failure returnCode) {
	z.mu.Lock()
	defer z.mu.Unlock()
	switch {
	case z.mode == modeOff:
		return 0, notInThisMode
	case seconds > 600:
		return 0, blowerBlocked
	case seconds == 0:
		return 0, notOK
	}
	return min(seconds, 120), ok
}

func (z *zone) purge(strength uint8) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.co2 = 400 + uint16(strength)
}

func (z *zone) targetTemperature() float32 {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.target
}

// setTargetTemperature returns the value accepted.
func (z *zone) setTargetTemperature(celsius float32) float32 {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.target = min(max(celsius, 16), 28)
	return z.target
}

// notify sends an event to its subscribers.
func (z *zone) notify(event uint16, w *payload.Writer) error {
	z.mu.Lock()
	offering := z.offering
	z.mu.Unlock()
	data, err := w.Payload()
	if err != nil {
		return err
	}
	return offering.Notify(event, data)
}
