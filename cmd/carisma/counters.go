package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"carisma.dev/gateway/mesh/gateway"
)

// refusedTable prints the counters of the control plane that say that something
// was wrong.
func refusedTable(t *table, counters map[string]uint64) {
	header := false
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		bad := strings.Contains(name, "refused") || strings.Contains(name, "nack") || strings.Contains(name, "apart") || name == "stalls"
		if !bad || counters[name] == 0 {
			continue
		}
		if !header {
			t.line("")
			t.row("COUNTED", "TIMES")
			header = true
		}
		t.row(name, fmt.Sprint(counters[name]))
	}
}

// usual are counters that say nothing was wrong.
var usual = map[string]bool{"Sent": true, "Received": true, "NacksSent": true}

// countersTable prints what of each network was not used or not answered, and what
// slow watchers lost.
func countersTable(t *table, s *gateway.Status) {
	header := false
	row := func(network, of, counted string, times uint64) {
		if times == 0 {
			return
		}
		if !header {
			t.line("")
			t.row("NETWORK", "OF", "COUNTED", "TIMES")
			header = true
		}
		t.row(network, of, counted, fmt.Sprint(times))
	}
	for _, n := range s.Networks {
		for _, part := range []struct {
			name     string
			counters any
		}{{"discovery", n.Discovery}, {"messages", n.Counters}} {
			v := reflect.ValueOf(part.counters)
			if v.IsNil() {
				continue
			}
			v = v.Elem()
			for i := range v.NumField() {
				name := v.Type().Field(i).Name
				if v.Field(i).Kind() == reflect.Uint64 && !usual[name] {
					row(n.Name, part.name, name, v.Field(i).Uint())
				}
			}
		}
	}
	row("gRPC", "watches", "ItemsLost", s.Watches.ItemsLost)
}
