package secure_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/endpoint"
	"carisma.dev/gateway/someip/endpoint/secure"
	"carisma.dev/gateway/someip/internal/authority"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func addr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func receive[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		require.FailNow(t, "nothing received")
		panic("unreachable")
	}
}

func message(payload string) []byte {
	return someip.NewRequest(0x1234, 0x0421, 1, 0x1343, 1, []byte(payload)).Append(nil)
}

// files writes what openssl wants to read, and returns options that name it.
func files(t *testing.T, a *authority.Authority, c *tls.Certificate) []string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	key, err := x509.MarshalECPrivateKey(c.PrivateKey.(*ecdsa.PrivateKey))
	require.NoError(t, err)
	return []string{
		"-CAfile", write("ca.pem", "CERTIFICATE", a.Certificate.Raw),
		"-cert", write("cert.pem", "CERTIFICATE", c.Certificate[0]),
		"-key", write("key.pem", "EC PRIVATE KEY", key),
	}
}

var shared = &secure.PSK{Identity: "gateway", Keys: map[string][]byte{"gateway": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}}}

// recorder keeps what a TCP connection hears.
type recorder struct {
	opened chan *endpoint.Conn
	msgs   chan []byte
	closed chan error
	failed chan *endpoint.HandshakeError
}

func newRecorder() *recorder {
	return &recorder{make(chan *endpoint.Conn, 16), make(chan []byte, 1024), make(chan error, 16), make(chan *endpoint.HandshakeError, 16)}
}

func (r *recorder) Opened(c *endpoint.Conn)              { r.opened <- c }
func (r *recorder) Message(_ *endpoint.Conn, msg []byte) { r.msgs <- bytes.Clone(msg) }
func (r *recorder) Closed(_ *endpoint.Conn, err error)   { r.closed <- err }

func (r *recorder) HandshakeFailed(err *endpoint.HandshakeError) { r.failed <- err }

type datagram struct {
	from netip.AddrPort
	data string
}

// protect opens a DTLS socket and returns what it receives.
func protect(t *testing.T, local string, cfg secure.Config, client bool) (secure.Socket, <-chan datagram) {
	t.Helper()
	u, err := endpoint.ListenUDP(endpoint.UDPConfig{Local: addr(local)})
	require.NoError(t, err)
	layer, err := secure.NewDTLS(cfg)
	require.NoError(t, err)
	open := layer.Server
	if client {
		open = layer.Client
	}
	p, err := open(u)
	require.NoError(t, err)
	ch := make(chan datagram, 256)
	p.Serve(func(from netip.AddrPort, b []byte) { ch <- datagram{from, string(b)} })
	t.Cleanup(func() { p.Close() })
	return p.(secure.Socket), ch
}
