package capture

import "container/list"

// streams follows the directions of TCP connections, within bounds.
type streams struct {
	cfg     Config
	ports   *ports
	add     func(Record)
	byFlow  map[Flow]*list.Element // of *stream
	recent  *list.List             // most recently used first
	held    int                    // bytes
	skipped uint64
}

func newStreams(cfg Config, p *ports, add func(Record)) *streams {
	return &streams{cfg: cfg, ports: p, add: add, byFlow: map[Flow]*list.Element{}, recent: list.New()}
}

// segment takes a TCP segment; false if it has data that is not SOME/IP.
func (s *streams) segment(p packet, at Position) bool {
	known := s.ports.known(p.flow)
	if !known && !s.ports.possible(p.flow) {
		return len(p.payload) == 0
	}
	element := s.byFlow[p.flow]
	if element != nil && p.syn {
		s.close(element)
		element = nil
	}
	if element == nil {
		if len(p.payload) == 0 && !p.syn || p.rst {
			return true // nothing to begin with
		}
		next := p.seq
		if p.syn {
			next++
		}
		element = s.recent.PushFront(&stream{flow: p.flow, vlan: p.vlan, next: next, limit: s.cfg.MaxMessage, last: at})
		s.byFlow[p.flow] = element
	}
	s.recent.MoveToFront(element)
	c := element.Value.(*stream)
	c.known = c.known || known
	if p.syn {
		p.seq++ // data in a SYN comes behind it
	}
	s.count(c, func() { c.take(p.seq, p.payload, at, s.add) })
	found := c.found || c.known || len(p.payload) == 0
	if p.fin || p.rst {
		s.close(element)
	}
	for s.recent.Len() > s.cfg.MaxStreams || s.recent.Len() > 0 && s.held > s.cfg.MaxBuffered {
		s.close(s.recent.Back())
	}
	return found
}

// count keeps the number of bytes held and skipped while a stream works.
func (s *streams) count(c *stream, work func()) {
	held, skipped := c.held(), c.skipped
	work()
	s.held += c.held() - held
	s.skipped += c.skipped - skipped
}

// close ends a stream: what it waits for does not come any more.
func (s *streams) close(element *list.Element) {
	c := element.Value.(*stream)
	s.count(c, func() { c.end(s.add) })
	s.recent.Remove(element)
	delete(s.byFlow, c.flow)
}

// flush ends all streams, those first that were quiet longest.
func (s *streams) flush() {
	for s.recent.Len() > 0 {
		s.close(s.recent.Back())
	}
}
