package runtime

import (
	"context"
	"net/netip"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
)

// A Handler serves the requests of an offering.
type Handler interface {
	// ServeSOMEIP is called on the goroutine that received the request and
	// must not block. The context ends some time after the offering stopped
	// (see [NetworkConfig.DrainTimeout]), or when the stack closes. The request
	// may be answered later and from anywhere.
	ServeSOMEIP(ctx context.Context, r *Request)
}

// HandlerFunc is a function as a [Handler].
type HandlerFunc func(ctx context.Context, r *Request)

// ServeSOMEIP calls f.
func (f HandlerFunc) ServeSOMEIP(ctx context.Context, r *Request) { f(ctx, r) }

// A Request is one request that an offering received. Unless NoReturn is set
// it must be answered once, by Respond or Fail, which are safe to call from any
// goroutine.
type Request struct {
	// Payload is a view, valid until the handler returns: copy it to keep it.
	Payload []byte
	// Peer is the client's endpoint.
	Peer            netip.AddrPort
	Method          uint16
	Client, Session uint16
	// NoReturn says that this is a fire-and-forget request, which is never answered.
	NoReturn bool
	// Reliable says that the request came over TCP.
	Reliable bool
	// E2E is the verdict on the request, if its messages are protected.
	E2E e2e.Result

	exchange
}

// Respond answers the request with E_OK. The payload may be reused once it
// returns. When the payload is too large for the transport the client gets
// E_NOT_OK, and the caller [ErrTooLarge] (UDP-2).
func (r *Request) Respond(payload []byte) error {
	return r.answer(someip.Response, someip.OK, payload)
}

// Fail answers the request with a return code: in an ERROR message (0x81) when
// exception is set, else in a RESPONSE (RC-3). Codes of the application may
// carry a payload (RC-5).
func (r *Request) Fail(code someip.ReturnCode, exception bool, payload []byte) error {
	typ := someip.Response
	if exception {
		typ = someip.Error
	}
	return r.answer(typ, code, payload)
}
