package secure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"time"
)

// Defaults of a [Config].
const (
	DefaultHandshakeTimeout = 5 * time.Second
	DefaultIdleTimeout      = 5 * time.Minute
	DefaultMaxPeers         = 256
	DefaultMaxHandshakes    = 32
)

// Config describes who we are and whom we trust. A server needs Certificate or
// PSK, a client Roots or PSK; a client with Certificate shows it where it is asked
// to. Zero values stand for the defaults. It must not be changed once it is used.
type Config struct {
	// Certificate is our own, with its chain and key.
	Certificate *tls.Certificate
	// Roots are the authorities that peers' certificates must come from. A client
	// without them trusts those of the system; a server with them demands a
	// certificate of each client.
	Roots *x509.CertPool
	// ServerName is what the certificate of a server must be for; empty: the
	// address that was dialled.
	ServerName string
	// PSK is for DTLS, instead of certificates.
	PSK *PSK

	HandshakeTimeout time.Duration // of DTLS; that of TLS is TCPConfig.ConnectTimeout
	IdleTimeout      time.Duration // after which a silent DTLS peer is forgotten
	MaxPeers         int           // of a DTLS socket
	MaxHandshakes    int           // of a DTLS socket, under way at one time
	Logger           *slog.Logger  // nil: no log
}

// PSK has pre-shared keys (RFC 4279).
type PSK struct {
	// Identity is ours as a client.
	Identity string
	// Keys are those of the identities that a server accepts; a client needs that
	// of its own.
	Keys map[string][]byte
}

// Errors of a [Config].
var (
	ErrNoCredentials = errors.New("secure: neither certificate nor pre-shared key")
	ErrNoKey         = errors.New("secure: no key for this identity")
)

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.HandshakeTimeout, DefaultHandshakeTimeout)
	def(&c.IdleTimeout, DefaultIdleTimeout)
	if c.MaxPeers == 0 {
		c.MaxPeers = DefaultMaxPeers
	}
	if c.MaxHandshakes == 0 {
		c.MaxHandshakes = DefaultMaxHandshakes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) certificates() []tls.Certificate {
	if c.Certificate == nil {
		return nil
	}
	return []tls.Certificate{*c.Certificate}
}

// serverName is what the certificate of a server at that host must be for.
func (c Config) serverName(host string) string {
	if c.ServerName != "" {
		return c.ServerName
	}
	return host
}

// key finds the key of an identity.
func (p *PSK) key(identity string) ([]byte, error) {
	if key := p.Keys[identity]; len(key) > 0 {
		return key, nil
	}
	return nil, ErrNoKey
}
