package faults

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"

	"carisma.dev/gateway/interop/faults/record"
)

const (
	// callTimeout is the deadline of a load's calls.
	callTimeout = 2 * time.Second
	// reopenPause is how long a watcher waits until it opens its stream again.
	reopenPause = 20 * time.Millisecond
)

// loading is a load that runs. What it has recorded is guarded by mu.
type loading struct {
	*Load

	mu    sync.Mutex
	calls []record.Call
	turns []record.Turn
}

func (l *loading) call(c record.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}

func (l *loading) turn(t record.Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turns = append(l.turns, t)
}

// forget drops what was recorded, but keeps whether the stream is open.
func (l *loading) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = nil
	if n := len(l.turns); n > 0 {
		l.turns = append([]record.Turn(nil), l.turns[n-1])
	}
}

// run calls or watches until ctx ends.
func (l *loading) run(ctx context.Context, conn *grpc.ClientConn) {
	if l.Watch {
		l.runWatch(ctx, conn)
	} else {
		l.runCalls(ctx, conn)
	}
}

// runCalls calls at a steady rate, whether or not earlier calls were answered,
// until ctx ends.
func (l *loading) runCalls(ctx context.Context, conn *grpc.ClientConn) {
	var wg sync.WaitGroup
	defer wg.Wait()
	began := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := uint32(1); ; n++ {
		wg.Go(func() {
			callCtx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			in, out := request(n), []byte(nil)
			c := record.Call{Began: time.Now()}
			err := conn.Invoke(callCtx, l.Method, &in, &out, grpc.CallAuthority(l.Authority))
			c.Ended = time.Now()
			c.Code, c.Reason = outcome(err)
			if err == nil {
				var turn record.Turn
				if turn, c.Program, err = parse(out); err != nil || turn.Number != n {
					c.Code = "wrong answer"
				}
			}
			if ctx.Err() == nil {
				l.call(c)
			}
		})
		// By the clock: what a busy machine delays is made up for.
		timer.Reset(time.Until(began.Add(time.Duration(n) * l.Pause)))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// runWatch keeps a stream open until ctx ends.
func (l *loading) runWatch(ctx context.Context, conn *grpc.ClientConn) {
	for {
		l.turn(record.Turn{At: time.Now(), Kind: record.Opened})
		err := l.watch(ctx, conn)
		if ctx.Err() != nil {
			return
		}
		end := record.Turn{At: time.Now(), Kind: record.Ended}
		end.Code, end.Reason = outcome(err)
		l.turn(end)
		timer := time.NewTimer(reopenPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (l *loading) watch(ctx context.Context, conn *grpc.ClientConn) error {
	s, err := openStream(ctx, conn, l.Authority, l.Method)
	if err != nil {
		return err
	}
	for {
		var msg []byte
		if err := s.RecvMsg(&msg); err != nil {
			return err
		}
		turn, err := parseItem(msg)
		if err != nil {
			return err
		}
		turn.At = time.Now()
		l.turn(turn)
	}
}

// openStream opens a server stream with an empty request.
func openStream(ctx context.Context, conn *grpc.ClientConn, authority, method string) (grpc.ClientStream, error) {
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, grpc.CallAuthority(authority))
	if err != nil {
		return nil, err
	}
	in := []byte{}
	if err := s.SendMsg(&in); err != nil {
		return nil, err
	}
	return s, s.CloseSend()
}
