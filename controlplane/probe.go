package controlplane

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"

	"golang.org/x/net/http2"
)

var errNotHTTP2 = errors.New("control plane: the ingress does not speak HTTP/2")

// probeHTTP2 asks an ingress for its HTTP/2 settings. A connection alone proves
// nothing: the kernel accepts it for a frozen process too.
func probeHTTP2(ctx context.Context, ingress netip.AddrPort) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", ingress.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	frame, err := framer.ReadFrame()
	if err != nil {
		return err
	}
	if _, ok := frame.(*http2.SettingsFrame); !ok {
		return errNotHTTP2
	}
	return nil
}
