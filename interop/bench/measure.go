package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"carisma.dev/gateway/interop/bench/benchv1"
	"carisma.dev/gateway/mesh/api"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/run"
)

// Times are the quantiles of one measurement, in microseconds.
type Times struct {
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
}

// path is one way whose round trip is measured.
type path struct {
	name  string
	round func(ctx context.Context) (Times, error)
}

// calls in a round, after some that warm up.
type effort struct{ calls, warmup int }

// serial measures calls one after the other.
func (e effort) serial(ctx context.Context, call func(context.Context) error) (Times, error) {
	times := make([]time.Duration, 0, e.calls)
	for i := range e.warmup + e.calls {
		began := time.Now()
		if err := call(ctx); err != nil {
			return Times{}, err
		}
		if i >= e.warmup {
			times = append(times, time.Since(began))
		}
	}
	slices.Sort(times)
	at := func(q float64) float64 { return float64(times[int(q*float64(len(times)-1))]) / 1e3 }
	return Times{at(0.5), at(0.99)}, nil
}

// client calls the echo services over one connection.
type client struct {
	conn *grpc.ClientConn
	effort
}

// clients are connections that are closed together. What failed of making them stays
// in err.
type clients struct {
	effort

	r    *run.Runner
	made []*client
	err  error
}

// dial connects from a host to host:port or to the path of a Unix socket.
func (cs *clients) dial(host, address string) *client {
	from := cs.r.Host(host)
	var opts []grpc.DialOption
	if address[0] == '/' {
		opts = append(opts, grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return from.Dial(ctx, "unix", path)
		}))
	}
	conn, err := from.NewClient(address, opts...)
	if err != nil {
		cs.err = errors.Join(cs.err, err)
		return nil
	}
	c := &client{conn, cs.effort}
	cs.made = append(cs.made, c)
	return c
}

func (cs *clients) close() error {
	var errs []error
	for _, c := range cs.made {
		errs = append(errs, c.conn.Close())
	}
	return errors.Join(errs...)
}

// echo measures the SOME/IP echo of an instance through the mesh.
func (c *client) echo(instance string) func(context.Context) (Times, error) {
	return func(ctx context.Context) (Times, error) {
		stub := benchv1.NewEchoClient(c.conn)
		ctx = metadata.AppendToOutgoingContext(ctx, api.InstanceHeader, instance)
		return c.serial(ctx, func(ctx context.Context) error {
			out, err := stub.Echo(ctx, &benchv1.EchoEchoRequest{Value: 42})
			if err == nil && out.GetValue() != 42 {
				err = fmt.Errorf("the echo is %d", out.GetValue())
			}
			return err
		})
	}
}

// plain measures the native echo.
func (c *client) plain() func(context.Context) (Times, error) {
	return func(ctx context.Context) (Times, error) {
		stub := benchv1.NewPlainClient(c.conn)
		return c.serial(ctx, func(ctx context.Context) error {
			_, err := stub.Echo(ctx, &benchv1.PlainEchoRequest{Value: 42})
			return err
		})
	}
}

// vsomeipClient runs the client on vsomeip against the service on vsomeip.
func vsomeipClient(r *run.Runner) func(context.Context) (Times, error) {
	return func(context.Context) (Times, error) {
		var out bytes.Buffer
		if err := r.Process(clientSerial).Run(&out); err != nil {
			return Times{}, err
		}
		var t Times
		if err := json.Unmarshal(out.Bytes(), &t); err != nil || t.P50 == 0 {
			return t, fmt.Errorf("output of the client on vsomeip: %q: %w", out.String(), err)
		}
		return t, nil
	}
}

// ownClient measures a client on our stack, in the given host.
func (e effort) ownClient(r *run.Runner, instance uint16) func(context.Context) (Times, error) {
	return func(ctx context.Context) (t Times, err error) {
		err = withOwnClient(ctx, r, instance, func(call func(context.Context) error) (err error) {
			t, err = e.serial(ctx, call)
			return err
		})
		return t, err
	}
}

// ownRate is the same with several calls outstanding.
func (e effort) ownRate(r *run.Runner, instance uint16) func(context.Context) (float64, error) {
	return func(ctx context.Context) (rate float64, err error) {
		err = withOwnClient(ctx, r, instance, func(call func(context.Context) error) (err error) {
			rate, err = e.together(ctx, call)
			return err
		})
		return rate, err
	}
}

// withOwnClient measures with a client on our stack that calls an echo.
func withOwnClient(ctx context.Context, r *run.Runner, instance uint16, measure func(call func(context.Context) error) error) (err error) {
	n := r.Vehicle().Network(network)
	var stack *runtime.Stack
	if err := r.Host(clientHost).Do(func() (err error) {
		stack, err = runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{{
			Name:      network,
			Address:   netip.PrefixFrom(r.Addr(clientHost, network), n.Subnet.Bits()),
			SD:        runtime.SDConfig{Group: n.SD.Group, Port: n.SD.Port},
			ClientIDs: runtime.Range{First: 0x1600, Last: 0x16ff},
		}}})
		return err
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack.Close()) }()
	c, err := stack.Network(network).Client(runtime.InstanceKey{Service: 0x6001, Instance: instance, Major: 1})
	if err != nil {
		return err
	}
	defer c.Close()
	payload := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	call := func(ctx context.Context) error {
		_, err := c.Call(ctx, 1, false, payload)
		return err
	}
	if err := retry(ctx, call); err != nil {
		return err
	}
	return measure(call)
}

// udpEcho measures a bare UDP echo between two hosts: the floor.
func (e effort) udpEcho(r *run.Runner) func(context.Context) (Times, error) {
	return func(ctx context.Context) (t Times, err error) {
		address := netip.AddrPortFrom(r.Addr(ownHost, network), 30900)
		var server *net.UDPConn
		if err := r.Host(ownHost).Do(func() (err error) {
			server, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(address))
			return err
		}); err != nil {
			return t, err
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			buf := make([]byte, 64)
			for {
				n, from, err := server.ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				_, _ = server.WriteToUDPAddrPort(buf[:n], from) // a lost echo is the reader's time-out
			}
		}()
		defer func() {
			_ = server.Close()
			<-ended
		}()
		conn, err := r.Host(clientHost).Dial(ctx, "udp4", address.String())
		if err != nil {
			return t, err
		}
		defer conn.Close()
		buf := make([]byte, 64)
		return e.serial(ctx, func(context.Context) error {
			if _, err := conn.Write(buf[:24]); err != nil {
				return err
			}
			if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				return err
			}
			_, err := conn.Read(buf)
			return err
		})
	}
}

// startTimeout bounds the wait for the vehicle, and a first round on a busy machine.
const startTimeout = 90 * time.Second

// retry calls f until it succeeds: services take a moment to appear.
func retry(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		timer := time.NewTimer(50 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
