package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"carisma.dev/gateway/mesh/config"
)

// FetchStatus asks the gateway whose state directory is given.
func FetchStatus(ctx context.Context, state string) (*Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	body, err := ask(ctx, state, http.MethodGet, "/status", nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var s Status
	if err := json.NewDecoder(body).Decode(&s); err != nil {
		return nil, fmt.Errorf("gateway of %s: %w", state, err)
	}
	return &s, nil
}

// AddService adds a native service to the gateway whose state directory is given,
// over restarts, and tells each step. With a wait it returns once the service is
// healthy and the proxies of the mesh have it; an error says that they do not.
func AddService(ctx context.Context, state string, s config.Service, wait time.Duration, report func(Step)) error {
	data, err := config.Encode(s)
	if err != nil {
		return err
	}
	return change(ctx, state, http.MethodPost, "/services?wait="+wait.String(), data, report)
}

// RemoveService takes the instance with a mesh name from the gateway whose state
// directory is given. With drain it is the second half of a move: calls go to the
// other instances first, those that run have drain to end, and no call fails.
func RemoveService(ctx context.Context, state, name string, drain time.Duration, report func(Step)) error {
	path := "/services/" + url.PathEscape(name) + "?drain=" + drain.String()
	return change(ctx, state, http.MethodDelete, path, nil, report)
}

func change(ctx context.Context, state, method, path string, data []byte, report func(Step)) error {
	body, err := ask(ctx, state, method, path, data)
	if err != nil {
		return err
	}
	defer body.Close()
	for steps := json.NewDecoder(body); ; {
		var s Step
		switch err := steps.Decode(&s); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("gateway of %s: %w", state, err)
		case s.Error != "":
			return errors.New(s.Error)
		}
		report(s)
	}
}

func ask(ctx context.Context, state, method, path string, data []byte) (io.ReadCloser, error) {
	socket := filepath.Join(state, adminSocket)
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://gateway"+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no gateway answers on %s: %w", socket, err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("gateway on %s: %s", socket, resp.Status)
	}
	return resp.Body, nil
}
