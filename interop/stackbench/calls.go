package stackbench

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// inFlight is how many calls are outstanding where there are several.
const inFlight = 32

var eightBytes = []byte{1, 2, 3, 4, 5, 6, 7, 8}

// echoPort is that of the bare echo.
const echoPort = 30900

// echoAddress is where it listens.
var echoAddress = netip.AddrPortFrom(serverAddr, echoPort).String()

// serial returns the median time of calls one after the other, in microseconds.
func (w *world) serial(call func() error) (float64, error) {
	times := make([]time.Duration, 0, w.o.Calls)
	for i := range w.o.Calls/10 + w.o.Calls {
		began := time.Now()
		if err := call(); err != nil {
			return 0, err
		}
		if i >= w.o.Calls/10 {
			times = append(times, time.Since(began))
		}
	}
	slices.Sort(times)
	return float64(times[len(times)/2]) / 1e3, nil
}

// together returns the calls a second with several outstanding.
func (w *world) together(call func() error) (float64, error) {
	total := int64(10 * w.o.Calls)
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var work sync.WaitGroup
	began := time.Now()
	for range inFlight {
		work.Go(func() {
			for done.Add(1) <= total && failed.Load() == nil {
				if err := call(); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	work.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(total) / time.Since(began).Seconds(), nil
}

// ownCalls measures our client against an instance.
func (w *world) ownCalls(ctx context.Context, instance uint16, measure func(func() error) (float64, error)) (float64, error) {
	c, _, closeStack, err := w.use(ctx, instance)
	if err != nil {
		return 0, err
	}
	result, err := measure(func() error {
		_, err := c.Call(ctx, Echo, false, eightBytes)
		return err
	})
	return result, errors.Join(err, closeStack())
}

// dialEcho connects to the bare echo.
func (w *world) dialEcho(ctx context.Context) (net.Conn, error) {
	conn, err := w.client.Dial(ctx, "udp4", netip.AddrPortFrom(serverAddr, echoPort).String())
	if err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// bareSerial is serial with the bare echo: datagrams as long as a call.
func (w *world) bareSerial(ctx context.Context) (float64, error) {
	conn, err := w.dialEcho(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	b := make([]byte, 64)
	return w.serial(func() error {
		if _, err := conn.Write(b[:24]); err != nil {
			return err
		}
		_, err := conn.Read(b)
		return err
	})
}

// bareTogether is together with the bare echo: each answer is the next request.
func (w *world) bareTogether(ctx context.Context) (float64, error) {
	conn, err := w.dialEcho(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	b := make([]byte, 64)
	total := 10 * w.o.Calls
	began := time.Now()
	for i := range total + inFlight {
		if i >= inFlight {
			if _, err := conn.Read(b); err != nil {
				return 0, err
			}
		}
		if i < total {
			if _, err := conn.Write(b[:24]); err != nil {
				return 0, err
			}
		}
	}
	return float64(total) / time.Since(began).Seconds(), nil
}

// vsomeipSerial is serial with vsomeip on both sides.
func (w *world) vsomeipSerial(ctx context.Context) (float64, error) {
	var t struct {
		P50 float64 `json:"p50_us"`
	}
	err := w.runClient(ctx, &t)
	return t.P50, err
}

// vsomeipTogether is together with vsomeip on both sides.
func (w *world) vsomeipTogether(ctx context.Context) (float64, error) {
	var t struct {
		Rate float64 `json:"calls_per_s"`
	}
	err := w.runClient(ctx, &t, "--in-flight", "32", "--calls", "30000")
	return t.Rate, err
}
