package lossy

// Kind is what a datagram is for.
type Kind uint8

// The kinds.
const (
	Data Kind = iota
	UnicastSD
	MulticastSD
	kinds
)

// Counts are what became of the datagrams of one kind in one direction:
// Received + Duplicated = Forwarded + Dropped + Failed + Waiting.
type Counts struct {
	Received   uint64
	Forwarded  uint64
	Dropped    uint64
	Duplicated uint64
	Failed     uint64 // could not be sent
	Waiting    uint64 // are still delayed
	Corrupted  uint64 // of those that were not dropped
	HeldBack   uint64 // copies that others could overtake
}

// Lost returns what came and did not go, once nothing waits.
func (c Counts) Lost() uint64 { return c.Dropped + c.Failed }

func (c Counts) plus(o Counts) Counts {
	return Counts{
		c.Received + o.Received, c.Forwarded + o.Forwarded, c.Dropped + o.Dropped, c.Duplicated + o.Duplicated,
		c.Failed + o.Failed, c.Waiting + o.Waiting, c.Corrupted + o.Corrupted, c.HeldBack + o.HeldBack,
	}
}

// Stats are the counters of a relay.
type Stats struct {
	// Flows are by the side that the datagrams come from, and by kind.
	Flows [2][kinds]Counts
	// Overrun counts datagrams for which the sockets of the relay had no room.
	Overrun uint64
}

// SD returns the counts of service discovery from a side.
func (s Stats) SD(from int) Counts {
	return s.Flows[from][UnicastSD].plus(s.Flows[from][MulticastSD])
}

// Data returns the counts of everything else from a side.
func (s Stats) Data(from int) Counts { return s.Flows[from][Data] }
