package envoy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	adminTimeout  = time.Second
	maxAdminReply = 4 << 20
)

// Admin talks to an Envoy's administration socket. It is safe for concurrent
// use and keeps no connection.
type Admin struct {
	client *http.Client
}

// NewAdmin returns a client of the administration on the Unix socket.
func NewAdmin(socket string) *Admin {
	return &Admin{client: &http.Client{
		Timeout: adminTimeout,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", socket)
			},
		},
	}}
}

func (a *Admin) do(ctx context.Context, method, path string) ([]byte, error) {
	code, body, err := a.ask(ctx, method, path)
	if err != nil {
		return nil, err
	}
	if code != http.StatusOK {
		return nil, fmt.Errorf("envoy admin %s: status %d: %.200s", path, code, strings.TrimSpace(string(body)))
	}
	return body, nil
}

func (a *Admin) ask(ctx context.Context, method, path string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://envoy"+path, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAdminReply))
	return resp.StatusCode, body, err
}

// Live tells whether Envoy is LIVE: it then serves what it was given so far,
// which may be nothing, so only an ACK says that it is configured. Until the
// control plane has answered it takes up to 15 s to become LIVE. The error says
// that Envoy does not answer at all.
func (a *Admin) Live(ctx context.Context) (bool, error) {
	code, _, err := a.ask(ctx, http.MethodGet, "/ready")
	return code == http.StatusOK, err
}

// NodeID returns the node id that Envoy was started with.
func (a *Admin) NodeID(ctx context.Context) (string, error) {
	body, err := a.do(ctx, http.MethodGet, "/server_info")
	if err != nil {
		return "", err
	}
	var info struct {
		Node struct {
			ID string `json:"id"`
		} `json:"node"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("envoy admin /server_info: %w", err)
	}
	return info.Node.ID, nil
}

// drain tells Envoy to take leave of its callers: connections are told to go
// (GOAWAY) while the listeners still answer.
func (a *Admin) drain(ctx context.Context) error {
	_, err := a.do(ctx, http.MethodPost, "/drain_listeners?graceful&skip_exit")
	return err
}

// ActiveRequests returns how many requests of callers are in flight.
func (a *Admin) ActiveRequests(ctx context.Context) (int, error) {
	n := 0
	err := a.stats(ctx, "downstream_rq_active", func(name string, value int) {
		if name != "http.admin.downstream_rq_active" { // this very request
			n += value
		}
	})
	return n, err
}

// RequestsTo returns how many requests to clusters are in flight, streams too.
func (a *Admin) RequestsTo(ctx context.Context, clusters ...string) (int, error) {
	n := 0
	err := a.stats(ctx, "upstream_rq_active", func(name string, value int) {
		for _, c := range clusters {
			if name == "cluster."+c+".upstream_rq_active" {
				n += value
			}
		}
	})
	return n, err
}

// stats calls fn with each counter whose name matches a regular expression.
func (a *Admin) stats(ctx context.Context, filter string, fn func(name string, value int)) error {
	body, err := a.do(ctx, http.MethodGet, "/stats?format=json&filter="+filter)
	if err != nil {
		return err
	}
	var all struct {
		Stats []struct {
			Name  string `json:"name"`
			Value int    `json:"value"`
		} `json:"stats"`
	}
	if err := json.Unmarshal(body, &all); err != nil {
		return fmt.Errorf("envoy admin /stats: %w", err)
	}
	for _, s := range all.Stats {
		fn(s.Name, s.Value)
	}
	return nil
}
