// Package secure protects the sockets of package endpoint: TCP by TLS 1.3, UDP by
// DTLS 1.2, with certificates, and DTLS also with pre-shared keys. It is a package
// of its own, so that a program that protects nothing does not link DTLS.
//
// A [TLS] or a [DTLS] holds the credentials of one service, or of the clients of
// one, and serves any number of sockets. Service discovery and multicast cannot be
// protected (digest 13).
package secure
