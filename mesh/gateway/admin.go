package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"carisma.dev/gateway/mesh/config"
)

const (
	// statusTimeout bounds a request for the status.
	statusTimeout = 2 * time.Second
	maxRequest    = 64 << 10
)

// Step is a step of a change that a command asked for, told once it is done.
type Step struct {
	Name   string    `json:"step"`
	At     time.Time `json:"at"`
	Detail string    `json:"detail,omitempty"`
	// Late names the nodes whose proxies were connected and did not acknowledge.
	Late []string `json:"late,omitempty"`
	// Error ends the steps.
	Error string `json:"error,omitempty"`
}

func (g *gateway) serveAdmin(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(g.status()); err != nil {
			g.log.Debug("status not sent", "error", err)
		}
	})
	var one sync.Mutex // changes come one after the other
	mux.HandleFunc("POST /services", func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		g.stream(w, r, g.add)
	})
	mux.HandleFunc("DELETE /services/{name}", func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		g.stream(w, r, g.remove)
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: statusTimeout}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(g.listeners.admin); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin socket: %w", err)
	}
	one.Lock() // a change that ran has let go
	defer one.Unlock()
	return nil
}

// stream answers with a line for each step, as it is done.
func (g *gateway) stream(w http.ResponseWriter, r *http.Request, change func(*http.Request, func(Step)) error) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, flush := json.NewEncoder(w), http.NewResponseController(w)
	report := func(s Step) {
		s.At = time.Now()
		g.log.Info("service "+s.Name, "detail", s.Detail, "late", s.Late, "error", s.Error)
		if err := errors.Join(out.Encode(s), flush.Flush()); err != nil {
			g.log.Debug("step not told", "error", err)
		}
	}
	if err := change(r, report); err != nil {
		report(Step{Name: "failed", Error: err.Error()})
	}
}

// add adds the service in the body. With wait it reports until the proxies of the
// mesh have it.
func (g *gateway) add(r *http.Request, report func(Step)) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return err
	}
	var s config.Service
	if err := config.Decode("request", body, &s); err != nil {
		return err
	}
	wait, err := duration(r, "wait")
	if err != nil {
		return err
	}
	added, err := g.addNative(s)
	if err != nil {
		return err
	}
	report(Step{Name: "added", Detail: nameOf(s) + " at " + s.Address})
	if wait == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), wait)
	defer cancel()
	return g.arrive(ctx, added, report)
}

// duration is a query parameter that is one; none is 0.
func duration(r *http.Request, key string) (time.Duration, error) {
	text := r.URL.Query().Get(key)
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s: %q is no duration", key, text)
	}
	return d, nil
}
