package secure

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"time"

	"carisma.dev/gateway/someip/endpoint"
)

// TLS protects TCP connections by TLS 1.3: give it to [endpoint.TCPConfig].Layer.
type TLS struct {
	cfg Config
}

var _ endpoint.StreamLayer = (*TLS)(nil)

// NewTLS returns a layer with these credentials.
func NewTLS(cfg Config) (*TLS, error) {
	if cfg.PSK != nil {
		return nil, errors.New("secure: pre-shared keys are for DTLS only")
	}
	return &TLS{cfg.withDefaults()}, nil
}

// Client implements [endpoint.StreamLayer].
func (l *TLS) Client(ctx context.Context, c net.Conn, server netip.AddrPort) (net.Conn, error) {
	return shake(ctx, tls.Client(c, &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: l.cfg.certificates(),
		RootCAs:      l.cfg.Roots,
		ServerName:   l.cfg.serverName(server.Addr().WithZone("").String()),
	}), c)
}

// Server implements [endpoint.StreamLayer].
func (l *TLS) Server(ctx context.Context, c net.Conn) (net.Conn, error) {
	if l.cfg.Certificate == nil {
		return nil, ErrNoCredentials
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: l.cfg.certificates()}
	if l.cfg.Roots != nil {
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, l.cfg.Roots
	}
	return shake(ctx, tls.Server(c, cfg), c)
}

func shake(ctx context.Context, c *tls.Conn, under net.Conn) (net.Conn, error) {
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return &stream{c, under}, nil
}

// goodbye bounds how long closing waits to tell the peer.
const goodbye = 250 * time.Millisecond

// stream is a TLS connection whose Close does not wait for a peer that reads
// nothing any more (case 19).
type stream struct {
	*tls.Conn
	under net.Conn
}

// Close implements [net.Conn].
func (s *stream) Close() error {
	t := time.AfterFunc(goodbye, func() { s.under.Close() })
	defer t.Stop()
	return s.Conn.Close()
}
