package stackbench

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/payload"
	"carisma.dev/gateway/someip/tp"
)

// Micro is what one operation on bytes costs.
type Micro struct {
	What        string  `json:"what"`
	Bytes       int     `json:"bytes"`
	Nanoseconds float64 `json:"ns"`
	Allocations int64   `json:"allocs"`
	// MinGB is the throughput that is aimed at, in GB/s; 0: none.
	MinGB float64 `json:"min_gb_per_s,omitempty"`
}

// GB is the throughput in GB/s.
func (m Micro) GB() float64 { return float64(m.Bytes) / m.Nanoseconds }

// measure returns the processor time that an operation takes, which other processes
// do not lengthen as they do the time on the clock: the least of some runs.
func measure(f func() error) (m Micro, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m.Allocations = int64(testing.AllocsPerRun(100, func() { err = errors.Join(err, f()) }))
	for range 5 {
		began, err := threadTime()
		if err != nil {
			return m, err
		}
		var spent time.Duration
		n := 0
		for spent < 50*time.Millisecond {
			for range 100 {
				if err := f(); err != nil {
					return m, err
				}
			}
			n += 100
			now, err := threadTime()
			if err != nil {
				return m, err
			}
			spent = now - began
		}
		if ns := float64(spent) / float64(n); m.Nanoseconds == 0 || ns < m.Nanoseconds {
			m.Nanoseconds = ns
		}
	}
	return m, err
}

// threadTime is the processor time of this thread.
func threadTime() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano()), err
}

// micros measures the wire packages.
func micros() ([]Micro, error) {
	var rows []Micro
	var failed error
	add := func(what string, bytes int, minGB float64, f func() error) {
		if failed != nil {
			return
		}
		row, err := measure(f)
		if err != nil {
			failed = fmt.Errorf("%s: %w", what, err)
			return
		}
		row.What, row.Bytes, row.MinGB = what, bytes, minGB
		rows = append(rows, row)
	}
	message := someip.NewNotification(Service, Event, 1, 1, payloadOf(8))
	datagram := message.Append(nil)
	add("header: parse", len(datagram), 0, func() error { _, _, err := someip.ParseMessage(datagram); return err })
	buf := make([]byte, 0, 2048)
	add("header: build", len(datagram), 0, func() error { buf = message.Append(buf[:0]); return nil })
	addPayload(add)
	if err := addSegments(add); err != nil {
		return nil, err
	}
	for _, profile := range []e2e.Profile{e2e.P04, e2e.P07} {
		for _, size := range []int{64, 64<<10 - 1} {
			aim := 1.0
			if size == 64 {
				aim = 0
			}
			protector, err := e2e.NewProtector(e2e.Config{Profile: profile})
			if err != nil {
				return nil, err
			}
			data := payloadOf(size)
			add(fmt.Sprintf("E2E %v: protect", profile), size, aim, func() error { return protector.Protect(data) })
			checker, err := e2e.NewChecker(e2e.Config{Profile: profile})
			if err != nil {
				return nil, err
			}
			add(fmt.Sprintf("E2E %v: check", profile), size, aim, func() error { return checker.Check(data).Err })
		}
	}
	return rows, failed
}

func payloadOf(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// addPayload measures a struct of ten members: numbers, a text and an array.
func addPayload(add func(string, int, float64, func() error)) {
	buf := make([]byte, 0, 256)
	var size int
	encode := func() error {
		w := payload.NewWriter(buf[:0])
		for i := range uint32(8) {
			w.Uint32(i)
		}
		w.String(4, payload.PlainText, "rear left")
		array := w.Begin(2)
		for i := range uint16(8) {
			w.Uint16(i)
		}
		w.End(array)
		b, err := w.Payload()
		size = len(b)
		return err
	}
	_ = encode() // for the size
	encoded := buf[:size]
	add("payload: encode ten members", size, 0, encode)
	add("payload: decode ten members, views", size, 0, func() error {
		r := payload.NewReader(encoded)
		for range 8 {
			_ = r.Uint32()
		}
		r.End(skipText(r))
		array := r.Begin(2)
		for r.More() {
			_ = r.Uint16()
		}
		r.End(array)
		return r.Err()
	})
}

// skipText enters a text without making a string of it.
func skipText(r *payload.Reader) payload.Scope { return r.Begin(4) }

func addSegments(add func(string, int, float64, func() error)) error {
	const size = 64 << 10
	m := someip.NewNotification(Service, Event, 1, 1, payloadOf(size))
	b := make([]byte, 0, 1500)
	add("TP: segment", size, 0, func() error {
		s, err := tp.Rule{}.Segment(m)
		if err != nil {
			return err
		}
		for more := true; more; {
			b, more = s.Append(b[:0])
		}
		return nil
	})
	s, err := tp.Rule{}.Segment(m)
	if err != nil {
		return err
	}
	var segments []someip.Message
	for more := true; more; {
		var raw []byte
		raw, more = s.Append(nil)
		parsed, _, err := someip.ParseMessage(raw)
		if err != nil {
			return err
		}
		segments = append(segments, parsed)
	}
	r, now := tp.NewReassembler(tp.Config{}), time.Unix(1000, 0)
	path := tp.Path{From: netip.AddrPortFrom(serverAddr, 1), To: netip.AddrPortFrom(clientAddr, 1)}
	add("TP: reassemble", size, 0, func() error {
		for i := range segments {
			segments[i].Session = someip.NextSession(segments[i].Session)
			if whole, err := r.Receive(now, path, segments[i]); err != nil || (whole != nil) != (i == len(segments)-1) {
				return fmt.Errorf("segment %d: %w", i, err)
			}
		}
		return nil
	})
	return nil
}
