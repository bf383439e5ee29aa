package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"carisma.dev/gateway/mesh/gateway"
)

// counted prints counters that are not 0, below a header if there is one.
type counted struct {
	t      *table
	header []string // nil once it is printed
}

func (c *counted) row(times uint64, of ...string) {
	if times == 0 {
		return
	}
	if c.header != nil {
		c.t.line("")
		c.t.row(c.header...)
		c.header = nil
	}
	c.t.row(append(of, fmt.Sprint(times))...)
}

// refusedTable prints the counters of the control plane that say that something
// was wrong.
func refusedTable(t *table, counters map[string]uint64) {
	c := counted{t, []string{"COUNTED", "TIMES"}}
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		if strings.Contains(name, "refused") || strings.Contains(name, "nack") || strings.Contains(name, "apart") || name == "stalls" {
			c.row(counters[name], name)
		}
	}
}

// usual are counters that say nothing was wrong. Own has the echo of each multicast
// that we send.
var usual = map[string]bool{
	"Sent": true, "Received": true, "Own": true, "NacksSent": true, "EventsFiltered": true, "OK": true,
}

// countersTable prints what of each network was not used or not answered, and what
// slow watchers lost.
func countersTable(t *table, s *gateway.Status) {
	c := counted{t, []string{"NETWORK", "OF", "COUNTED", "TIMES"}}
	for _, n := range s.Networks {
		if n.Discovery != nil {
			c.fields(reflect.ValueOf(*n.Discovery), n.Name, "discovery")
		}
		if n.Counters != nil {
			c.fields(reflect.ValueOf(*n.Counters), n.Name, "messages")
			c.fields(reflect.ValueOf(n.Counters.E2E), n.Name, "E2E checks")
		}
	}
	c.row(s.Watches.ItemsLost, "gRPC", "watches", "ItemsLost")
}

// fields prints the counters of a struct.
func (c *counted) fields(counters reflect.Value, network, of string) {
	for field, v := range counters.Fields() {
		if v.Kind() == reflect.Uint64 && !usual[field.Name] {
			c.row(v.Uint(), network, of, field.Name)
		}
	}
}
