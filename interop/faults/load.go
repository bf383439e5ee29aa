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

// runCalls calls at a steady rate, whether or not earlier calls were answered,
// until ctx ends.
func (l *loading) runCalls(ctx context.Context, conn *grpc.ClientConn) {
	var wg sync.WaitGroup
	defer wg.Wait()
	ticker := time.NewTicker(l.Pause)
	defer ticker.Stop()
	for n := uint32(1); ; n++ {
		wg.Go(func() {
			callCtx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			in, out := request(n), []byte(nil)
			c := record.Call{Began: time.Now()}
			err := conn.Invoke(callCtx, l.Method, &in, &out, grpc.CallAuthority(l.Authority))
			c.Ended = time.Now()
			c.Code, c.Reason = outcome(err)
			if turn, parseErr := parseItem(out); err == nil && (parseErr != nil || turn.Number != n) {
				c.Code = "wrong answer"
			}
			if ctx.Err() == nil {
				l.call(c)
			}
		})
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
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
