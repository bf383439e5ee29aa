package xds

import (
	"context"
	"errors"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/mesh/api"
)

// stream is one ADS stream of a node's proxy; Cache.mu guards subs.
type stream struct {
	key       string // what go-control-plane knows the stream by
	node      *node
	epoch     uint64
	peer      string
	connected time.Time
	cancel    context.CancelCauseFunc
	subs      map[string]*subscription // by type
	listens   *bool                    // whether the ingress answers; nil: nobody asked yet
}

// takeOver is how long a new stream waits for the end of the one before: the end
// of a connection may be seen a moment after the start of the next.
const takeOver = 250 * time.Millisecond

var errStreamGone = errors.New("xds: the stream has ended")

// attach makes a stream the one of its node. A second one is refused (CAR-3),
// unless the node was resumed since the first began: then that one is a relic.
func (c *Cache) attach(ctx context.Context, id api.Identity, peer string, cancel context.CancelCauseFunc) (*stream, error) {
	patience := time.NewTimer(takeOver)
	defer patience.Stop()
	for {
		st, busy := c.tryAttach(id, peer, cancel)
		if st != nil {
			return st, nil
		}
		select {
		case <-busy.released:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-patience.C:
			c.mu.Lock()
			c.counts.RefusedStreams++
			c.mu.Unlock()
			c.log.Warn("second stream refused", "id", id.ID, "peer", peer, "holder", busy.peer)
			return nil, status.Errorf(codes.AlreadyExists, "a proxy of this node at %s is served since %s",
				busy.peer, busy.since.UTC().Format(time.RFC3339Nano))
		}
	}
}

// holder is the stream that is in the way.
type holder struct {
	released <-chan struct{}
	peer     string
	since    time.Time
}

func (c *Cache) tryAttach(id api.Identity, peer string, cancel context.CancelCauseFunc) (*stream, holder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.node(id.ID)
	if old := n.stream; old != nil {
		if id.Epoch <= old.epoch {
			return nil, holder{released: n.released, peer: old.peer, since: old.connected}
		}
		c.release(old)
		old.cancel(status.Error(codes.Aborted, "the node was resumed and its proxy has a newer stream"))
	}
	c.counts.Streams++
	st := &stream{
		key:  id.ID + "#" + strconv.FormatUint(c.counts.Streams, 10),
		node: n, epoch: id.Epoch, peer: peer, connected: time.Now(), cancel: cancel,
		subs: map[string]*subscription{},
	}
	n.stream, n.released = st, make(chan struct{})
	c.streams[st.key] = st
	c.log.Info("proxy connected", "node", n.name, "id", n.id, "peer", peer)
	return st, holder{}
}

// detach lets the node go when its stream has ended.
func (c *Cache) detach(st *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[st.key] != nil {
		c.log.Info("proxy gone", "node", st.node.name, "id", st.node.id, "peer", st.peer)
		c.release(st)
	}
}

func (c *Cache) release(st *stream) {
	defer c.tell()
	delete(c.streams, st.key)
	st.node.stream = nil
	close(st.node.released)
}

// sending notes the nonce under which a response goes out.
func (c *Cache) sending(st *stream, typeURL, nonce string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sub := st.subs[typeURL]; sub != nil && sub.flight != nil {
		sub.flight.nonce = nonce
	}
}
