package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"carisma.dev/gateway/mesh/config"
)

// Footprint is what a program takes at a moment.
type Footprint struct {
	PID         int `json:"pid"`
	AnonKiB     int `json:"anon_kib"` // anonymous memory
	Descriptors int `json:"descriptors"`
	Goroutines  int `json:"goroutines,omitempty"` // of a gateway
}

// programs are those whose footprint is watched.
func (g *Rig) programs() []string {
	var names []string
	for _, h := range g.runner.Vehicle().HPCs() {
		names = append(names, h.Name+"/gateway", h.Name+"/envoy")
		if h.Role == config.Central {
			names = append(names, h.Name+"/control-plane")
		}
	}
	return names
}

func (g *Rig) footprints(ctx context.Context) (map[string]Footprint, error) {
	all := map[string]Footprint{}
	for _, name := range g.programs() {
		pid, err := g.pid(name)
		if err != nil {
			return nil, err
		}
		f := Footprint{PID: pid}
		if f.AnonKiB, err = anonymous(pid); err != nil {
			return nil, err
		}
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			return nil, err
		}
		f.Descriptors = len(fds)
		if host, ok := strings.CutSuffix(name, "/gateway"); ok {
			st, err := g.gatewayStatus(ctx, host)
			if err != nil {
				return nil, err
			}
			f.Goroutines = st.Goroutines
		}
		all[name] = f
	}
	return all, nil
}

// anonymous returns the anonymous memory of a process in KiB.
func anonymous(pid int) (int, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if rest, ok := strings.CutPrefix(in.Text(), "RssAnon:"); ok {
			return strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(rest, "kB")))
		}
	}
	return 0, fmt.Errorf("process %d has no memory", pid)
}

// gatewayStatus is what the runner reads of a gateway's own status.
type gatewayStatus struct {
	NodeID     string `json:"node_id"`
	Epoch      uint64 `json:"epoch"`
	Goroutines int    `json:"goroutines"`
	Central    link   `json:"control_plane"`
	ADS        link   `json:"ads"`
}

// link is a connection to the control plane.
type link struct {
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since"`
}

// connected waits until every gateway and proxy that lost the control plane has it, and
// notes how long after its start that was.
func (g *Rig) connected(ctx context.Context, s *Step, start time.Time, r *Result) error {
	within := s.Connected
	r.ConnectedBound = ms(within)
	ctx, cancel := context.WithTimeout(ctx, calmAfter)
	defer cancel()
	for {
		nodes, err := g.nodes(ctx)
		if err != nil {
			return err
		}
		all, last := true, start
		for name, n := range nodes {
			if len(s.Nodes) > 0 && !slices.Contains(s.Nodes, name) {
				continue
			}
			for _, l := range []link{n.Central, n.ADS} {
				all = all && l.Connected && l.Since.After(start)
				if l.Since.After(last) {
					last = l.Since
				}
			}
		}
		if all {
			if r.Connected = ms(last.Sub(start)); last.Sub(start) > within {
				return fmt.Errorf("all are connected after %.0f ms", r.Connected)
			}
			return nil
		}
		if err := sleep(ctx, lookInterval); err != nil {
			return errors.New("not all have the control plane again")
		}
	}
}

func (g *Rig) gatewayStatus(ctx context.Context, host string) (gatewayStatus, error) {
	socket := filepath.Join(g.state(host), "admin.sock")
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var s gatewayStatus
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gateway/status", nil)
	if err != nil {
		return s, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// peaks samples the anonymous memory of programs until the function it returns is
// called, which gives the most that each had, in KiB. One that does not run is
// passed over.
func (g *Rig) peaks(ctx context.Context, programs []string) func() map[string]int {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	result := make(chan map[string]int)
	go func() {
		most := map[string]int{}
		for {
			for _, name := range programs {
				if pid, err := g.pid(name); err == nil {
					if kib, err := anonymous(pid); err == nil {
						most[name] = max(most[name], kib)
					}
				}
			}
			if sleep(ctx, 2*lookInterval) != nil {
				result <- most
				return
			}
		}
	}()
	return func() map[string]int {
		cancel()
		return <-result
	}
}

// grown compares footprints of the same programs, a process of its own each or
// not, long after one another: nothing may pile up. Who served the ECU before need
// not be who serves it now, so programs of a kind are judged together.
func grown(before, after map[string]Footprint) (broken []string) {
	type sum struct{ before, after, slack Footprint }
	kinds := map[string]*sum{}
	for name, a := range after {
		_, kind, _ := strings.Cut(name, "/")
		of := kinds[kind]
		if of == nil {
			of = &sum{}
			kinds[kind] = of
		}
		of.before, of.after = of.before.plus(before[name]), of.after.plus(a)
		of.slack = of.slack.plus(Footprint{AnonKiB: slackKiB, Descriptors: slackDescriptors, Goroutines: slackGoroutines})
	}
	for kind, of := range kinds {
		b, a, slack := of.before, of.after, of.slack
		if a.Descriptors > b.Descriptors+slack.Descriptors {
			broken = append(broken, fmt.Sprintf("%s: %d descriptors, before %d", kind, a.Descriptors, b.Descriptors))
		}
		if a.Goroutines > b.Goroutines+slack.Goroutines {
			broken = append(broken, fmt.Sprintf("%s: %d goroutines, before %d", kind, a.Goroutines, b.Goroutines))
		}
		if a.AnonKiB > b.AnonKiB+slack.AnonKiB {
			broken = append(broken, fmt.Sprintf("%s: %d KiB of anonymous memory, before %d", kind, a.AnonKiB, b.AnonKiB))
		}
	}
	return broken
}

// plus adds up what two programs take.
func (f Footprint) plus(o Footprint) Footprint {
	return Footprint{AnonKiB: f.AnonKiB + o.AnonKiB, Descriptors: f.Descriptors + o.Descriptors, Goroutines: f.Goroutines + o.Goroutines}
}

// What may be more after than before: calls and streams under way differ from
// moment to moment, Go's heap from collection to collection, and Envoy keeps the
// buffers of its worst moment.
const (
	slackDescriptors = 6
	slackGoroutines  = 16
	slackKiB         = 48 << 10
)
