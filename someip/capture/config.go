package capture

import "carisma.dev/gateway/someip"

// Config says where SOME/IP is expected. The zero Config finds it by itself.
type Config struct {
	// UDP and TCP are ports that carry SOME/IP, beside those that are found.
	UDP, TCP []uint16
	// Only takes messages from the ports given and from no others.
	Only bool
	// Ignore are ports that carry something else, whatever it looks like. nil:
	// 13400, diagnostics over IP, whose header has its length where ours has it.
	Ignore []uint16
	// MaxMessage is the longest message taken from a TCP stream, in bytes; above
	// it the framing counts as lost. 0: 10 MiB of payload.
	MaxMessage int
	// MaxBuffered bounds the bytes held for unfinished TCP messages and segments
	// out of order, all streams together. 0: 64 MiB.
	MaxBuffered int
	// MaxStreams bounds the directions of TCP connections followed at once. 0: 4096.
	MaxStreams int
}

const (
	portSD   = 30490
	portDoIP = 13400

	maxLearnt = 1 << 16 // endpoints taken from service discovery
)

func (c Config) withDefaults() Config {
	if c.Ignore == nil {
		c.Ignore = []uint16{portDoIP}
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = someip.HeaderSize + 10<<20
	}
	if c.MaxBuffered == 0 {
		c.MaxBuffered = 64 << 20
	}
	if c.MaxStreams == 0 {
		c.MaxStreams = 4096
	}
	return c
}

// Stats count what was read, and what was not.
type Stats struct {
	Frames      uint64
	Messages    uint64 // records without error
	Faults      uint64 // records with one
	Other       uint64 // datagrams and segments with data on ports that carry no SOME/IP
	Undecodable uint64 // frames that are not IP, or broken below UDP and TCP
	Fragments   uint64 // of IP packets, which SOME/IP never uses: not put together
	Skipped     uint64 // bytes of SOME/IP streams that were passed over to find a message
}
