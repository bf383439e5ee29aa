// Package authority issues certificates for tests.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/netip"
	"testing"
	"time"
)

// Authority is a certificate authority.
type Authority struct {
	Certificate *x509.Certificate // its own

	key *ecdsa.PrivateKey
}

// New makes an authority that signs for itself.
func New(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{}
	a.Certificate, a.key = a.issue(tb, &x509.Certificate{
		Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

func (a *Authority) issue(tb testing.TB, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.Certificate, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		tb.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	return c, key
}

// Of makes a certificate for the address of a host, as server and as client.
func (a *Authority) Of(tb testing.TB, host string) *tls.Certificate {
	tb.Helper()
	c, key := a.issue(tb, &x509.Certificate{
		Subject:     pkix.Name{CommonName: host},
		IPAddresses: []net.IP{netip.MustParseAddr(host).AsSlice()},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return &tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key, Leaf: c}
}

// Pool is what who trusts the authority trusts.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.Certificate)
	return p
}
