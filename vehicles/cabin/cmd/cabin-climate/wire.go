package main

import "carisma.dev/gateway/someip/payload"

func (z *zone) writeDescription(w *payload.Writer) {
	z.mu.Lock()
	mode := z.mode
	z.mu.Unlock()
	w.String(4, payload.PlainText, z.name)
	w.Uint8(mode)
	sensors := w.Begin(4)
	for _, s := range z.sensors {
		w.String(4, payload.PlainText, s.name)
		w.Float32(s.celsius)
		w.Bool(true)
	}
	w.End(sensors)
	w.Uint16(softwareVersion)
}

func readVents(r *payload.Reader) (vents []vent) {
	all := r.Begin(2)
	for r.More() {
		one := r.Begin(2)
		vents = append(vents, vent{r.Uint8(), r.Uint8(), r.Uint16()})
		r.End(one)
	}
	r.End(all)
	return vents
}

func writePositions(w *payload.Writer, positions []uint8) {
	w.Bytes(1, positions)
}

// sendAirQuality sends the event AirQuality.
func (z *zone) sendAirQuality() error {
	z.mu.Lock()
	co2 := z.co2
	z.mu.Unlock()
	w := payload.NewWriter(nil)
	w.Uint16(co2)
	w.Float32(12.5)
	w.String(4, payload.PlainText, z.name)
	samples := w.Begin(4)
	w.Uint16(co2)
	w.Uint16(co2 + 1)
	w.End(samples)
	return z.notify(airQualityID, w)
}

// notifyTarget sends the field TargetTemperature to its subscribers, and makes
// it the value that new ones get.
func (z *zone) notifyTarget(celsius float32) error {
	w := payload.NewWriter(nil)
	w.Float32(celsius)
	return z.notify(targetID, w)
}
