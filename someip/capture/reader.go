package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"carisma.dev/gateway/someip"
)

// Reader reads the messages of a capture in the order in which they were
// complete. It is not safe for concurrent use.
type Reader struct {
	source  source
	decoder *decoder
	ports   *ports
	streams *streams
	stats   Stats
	queue   []Record
	end     error // of the source; io.EOF when all is well
}

// NewReader reads the head of a capture. It fails with [ErrFormat] if that is
// none.
func NewReader(r io.Reader, cfg Config) (*Reader, error) {
	s, err := openSource(r)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	c := &Reader{source: s, decoder: newDecoder(), ports: newPorts(cfg)}
	c.streams = newStreams(cfg, c.ports, c.add)
	return c, nil
}

// Stats returns what was counted so far.
func (r *Reader) Stats() Stats {
	s := r.stats
	s.Skipped = r.streams.skipped
	return s
}

// Next returns the next record, which is the caller's. It returns io.EOF behind
// the last one, and another error, with the number of the frame, where the file
// itself is broken; what came before is good.
func (r *Reader) Next() (Record, error) {
	for len(r.queue) == 0 {
		if r.end != nil {
			return Record{}, r.end
		}
		r.read()
	}
	next := r.queue[0]
	r.queue[0] = Record{} // lets go of the bytes
	if r.queue = r.queue[1:]; len(r.queue) == 0 {
		r.queue = nil
	}
	return next, nil
}

// read takes one frame.
func (r *Reader) read() {
	frame, link, info, err := r.source.next()
	if err != nil {
		r.streams.flush()
		r.end = io.EOF
		if !errors.Is(err, io.EOF) {
			r.end = fmt.Errorf("capture: behind frame %d: %w", r.stats.Frames, err)
		}
		return
	}
	r.stats.Frames++
	at := Position{Frame: int(r.stats.Frames), Time: info.Timestamp}
	p, v := r.decoder.decode(link, frame)
	switch {
	case v == undecodable:
		r.stats.Undecodable++
	case v == fragment:
		r.stats.Fragments++
	case p.flow.Transport == TCP:
		if !r.streams.segment(p, at) {
			r.stats.Other++
		}
	case len(p.payload) > 0:
		r.datagram(p, at)
	}
}

// datagram takes the messages of a datagram.
func (r *Reader) datagram(p packet, at Position) {
	if !r.ports.known(p.flow) && (!r.ports.possible(p.flow) || !looksLike(p.payload)) {
		r.stats.Other++
		return
	}
	whole := bytes.Clone(p.payload)
	for b := whole; len(b) > 0; {
		rec := Record{Position: at, Flow: p.flow, VLAN: p.vlan, Bytes: b}
		rec.Offset = int64(len(whole) - len(b))
		m, rest, err := someip.ParseMessage(b)
		rec.Message, rec.Err = m, err
		if err == nil {
			rec.Bytes = b[:m.Size():m.Size()]
			rec.Err = m.Validate()
		}
		r.add(rec)
		if errors.Is(rec.Err, someip.ErrProtocolVersion) { // whose Length means what it wants (UDP-7)
			return
		}
		b = rest
	}
}

// add queues a record.
func (r *Reader) add(rec Record) {
	if rec.Err != nil {
		r.stats.Faults++
	} else {
		r.stats.Messages++
		r.ports.learn(rec.Message, rec.Bytes)
	}
	r.queue = append(r.queue, rec)
}
