package secure

import (
	"net/netip"
	"time"

	"github.com/pion/dtls/v3"

	"carisma.dev/gateway/someip/endpoint"
)

// DTLS protects UDP sockets by DTLS 1.2.
type DTLS struct {
	cfg    Config
	common []dtls.Option
}

var _ endpoint.PacketLayer = (*DTLS)(nil)

// The cipher suites: AEAD only.
var (
	certificateSuites = []dtls.CipherSuiteID{
		dtls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		dtls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		dtls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		dtls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		dtls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		dtls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
	pskSuites = []dtls.CipherSuiteID{
		dtls.TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256,
		dtls.TLS_PSK_WITH_AES_128_GCM_SHA256,
		dtls.TLS_PSK_WITH_AES_128_CCM,
		dtls.TLS_PSK_WITH_CHACHA20_POLY1305_SHA256,
	}
)

// retransmit is the first wait for the answer to a flight of a handshake; it doubles
// each time. RFC 6347 4.2.4.1 proposes a second and lets it be less where the way is
// known: in a vehicle it takes milliseconds.
const retransmit = 250 * time.Millisecond

// NewDTLS returns a layer with these credentials.
func NewDTLS(cfg Config) (*DTLS, error) {
	cfg = cfg.withDefaults()
	d := &DTLS{cfg: cfg, common: []dtls.Option{
		dtls.WithLoggerFactory(silence{}),
		dtls.WithFlightInterval(retransmit),
	}}
	if cfg.PSK != nil {
		d.common = append(d.common, dtls.WithCipherSuites(pskSuites...))
		return d, nil
	}
	d.common = append(d.common, dtls.WithCipherSuites(certificateSuites...))
	if cfg.Certificate != nil {
		d.common = append(d.common, dtls.WithCertificates(*cfg.Certificate))
	}
	return d, nil
}

// Client implements [endpoint.PacketLayer]. What is sent to a peer before the
// handshake is done waits for it, up to 64 datagrams.
func (d *DTLS) Client(u *endpoint.UDP) (endpoint.PacketSocket, error) {
	if psk := d.cfg.PSK; psk != nil {
		if _, err := psk.key(psk.Identity); err != nil {
			return nil, err
		}
	}
	return newSocket(u, d.cfg, true, d.connect), nil
}

// Server implements [endpoint.PacketLayer].
func (d *DTLS) Server(u *endpoint.UDP) (endpoint.PacketSocket, error) {
	if d.cfg.PSK == nil && d.cfg.Certificate == nil {
		return nil, ErrNoCredentials
	}
	return newSocket(u, d.cfg, false, d.accept), nil
}

// connect prepares an association that we begin.
func (d *DTLS) connect(w *wire) (*dtls.Conn, error) {
	var opts []dtls.ClientOption
	for _, o := range d.common {
		opts = append(opts, o)
	}
	if psk := d.cfg.PSK; psk != nil {
		opts = append(opts,
			dtls.WithPSK(func([]byte) ([]byte, error) { return psk.key(psk.Identity) }),
			dtls.WithPSKIdentityHint([]byte(psk.Identity)))
	} else {
		opts = append(opts, dtls.WithServerName(d.cfg.serverName(host(w.peer))))
		if d.cfg.Roots != nil {
			opts = append(opts, dtls.WithRootCAs(d.cfg.Roots))
		}
	}
	return dtls.ClientWithOptions(w, w.remote, opts...)
}

// accept prepares an association that a peer begins.
func (d *DTLS) accept(w *wire) (*dtls.Conn, error) {
	var opts []dtls.ServerOption
	for _, o := range d.common {
		opts = append(opts, o)
	}
	if psk := d.cfg.PSK; psk != nil {
		opts = append(opts, dtls.WithPSK(func(identity []byte) ([]byte, error) { return psk.key(string(identity)) }))
	} else if d.cfg.Roots != nil {
		opts = append(opts, dtls.WithClientAuth(dtls.RequireAndVerifyClientCert), dtls.WithClientCAs(d.cfg.Roots))
	}
	return dtls.ServerWithOptions(w, w.remote, opts...)
}

// host is how a certificate names an address.
func host(a netip.AddrPort) string { return a.Addr().WithZone("").String() }
