package tp

import (
	"cmp"
	"net/netip"
	"time"

	"carisma.dev/gateway/someip"
)

// AnyOrder as Config.Reorder accepts segments in any order, for messages of up to
// as many segments (TP-7).
const AnyOrder = 1 << 14

// Config configures a [Reassembler]. The zero value has the defaults.
type Config struct {
	// Timeout cancels a message of which nothing new came for so long (TP-8). 0: 5 s.
	Timeout time.Duration
	// Reorder is how many stretches of a message may wait for a segment that
	// belongs ahead of them (TP-7). 0: 16.
	Reorder int
	// CancelOverlap cancels a message of which bytes come twice. By default those
	// that came first count (TP-7). Messages without session are always cancelled.
	CancelOverlap bool

	// MaxMessage bounds the payload of a message in bytes (TP-8). 0: 10 MiB.
	MaxMessage int
	// Limit, if not nil, is asked about every segment for the largest payload of
	// such a message; 0 means that the method is not configured for TP (TP-10).
	// MaxMessage holds nevertheless.
	Limit func(h someip.Header) int

	// Limits on unfinished messages and their memory in bytes, of one peer (a
	// source address) and in all (TP-9). The oldest goes to keep them. Memory is
	// taken for what was received: about twice as much, four times if most came out of order.
	// 0: 32 and 32 MiB of a peer, 256 and 64 MiB in all.
	MaxPeerMessages, MaxPeerBytes int
	MaxMessages, MaxBytes         int

	// OnCancel, if not nil, is told of every message that is thrown away. It must
	// not call the Reassembler.
	OnCancel func(Cancelled)
}

// Cancelled describes an unfinished message that was thrown away.
type Cancelled struct {
	Path     Path
	Header   someip.Header // of its first segment, without the TP flag
	Received int           // bytes of its payload that had come
	Reason   Reason
}

// Path says where a segment came from and where it arrived. To may be left out if
// the Reassembler serves one socket.
type Path struct {
	From, To netip.AddrPort
}

func (c Config) withDefaults() Config {
	set := func(v *int, def int) {
		if *v <= 0 {
			*v = def
		}
	}
	c.Timeout = cmp.Or(max(c.Timeout, 0), 5*time.Second)
	set(&c.Reorder, 16)
	set(&c.MaxMessage, 10<<20)
	set(&c.MaxPeerMessages, 32)
	set(&c.MaxPeerBytes, 32<<20)
	set(&c.MaxMessages, 256)
	set(&c.MaxBytes, 64<<20)
	return c
}
