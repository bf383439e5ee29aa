package faults

import (
	"time"

	"carisma.dev/gateway/interop/faults/record"
)

func (l *loading) seeStream(s *Seen, t times, c *Concerned) {
	var items []record.Turn
	var lastEnd, quietEnd time.Time
	previous := t.began
	for _, turn := range l.turns {
		if turn.At.Before(t.began) {
			continue
		}
		switch turn.Kind {
		case record.Ended:
			s.fail(turn.At, turn.Code, turn.Reason, t.fault)
			lastEnd = turn.At
		case record.Item:
			s.Count++
			items = append(items, turn)
		case record.Opened:
		}
		if l.periodic() && turn.Kind != record.Opened {
			pause := turn.At.Sub(previous)
			s.Waits = max(s.Waits, ms(pause))
			if pause > silence && turn.Kind == record.Item {
				quietEnd = turn.At
			}
			previous = turn.At
		}
	}
	l.seeServed(s, t, items, lastEnd, quietEnd)
	l.seeNumbers(s, c)
	if l.Field {
		l.seeValues(s, t, items, c)
	}
}

// seeServed finds when items came again.
func (l *loading) seeServed(s *Seen, t times, items []record.Turn, lastEnd, quietEnd time.Time) {
	well := quietEnd
	for _, it := range items {
		if !lastEnd.IsZero() && it.At.After(lastEnd) {
			if it.At.After(well) {
				well = it.At
			}
			break
		}
	}
	switch {
	case !well.IsZero():
		s.Served = max(0, ms(well.Sub(t.repair)))
	case !lastEnd.IsZero() && !l.Quiet:
		s.broken("it has no item again")
	}
}

// seeNumbers follows the numbers within each opening: what is missing must be
// told by the next item.
func (l *loading) seeNumbers(s *Seen, c *Concerned) {
	if l.Field || c != nil && c.Lost {
		return
	}
	var last uint32
	known := false
	for _, turn := range l.turns {
		if turn.Kind != record.Item {
			known = false
			continue
		}
		if known && turn.Number != last+1+turn.Gap {
			// A number that falls is a source that began anew.
			if c != nil && turn.Number <= last || l.Quiet && turn.Number == 1+turn.Gap {
				last = turn.Number
				continue
			}
			s.broken("item %d follows %d and tells a gap of %d", turn.Number, last, turn.Gap)
			return
		}
		last, known = turn.Number, true
	}
}

// seeValues wants the current value once at each opening.
func (l *loading) seeValues(s *Seen, t times, items []record.Turn, c *Concerned) {
	extra, opened := 0, true // an opening before the scenario has had its value
	for _, turn := range l.turns {
		if turn.At.Before(t.began) {
			continue
		}
		switch turn.Kind {
		case record.Opened:
			opened = false
		case record.Item:
			if !opened && !turn.Initial {
				s.broken("the first item of an opening is %d and not the current value", turn.Number)
			}
			if turn.Initial && opened {
				extra++
			}
			opened = true
		case record.Ended:
		}
	}
	if extra != 0 {
		s.broken("the current value came %d times more than once for each opening", extra)
	}
	if c != nil && c.Value != nil && (len(items) == 0 || items[len(items)-1].Number != *c.Value) {
		s.broken("the last value is not %d", *c.Value)
	}
}
