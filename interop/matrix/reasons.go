package matrix

// Peers are the foreign stacks, in the order of the page. Each runs as a program on
// it.
var Peers = []string{"vsomeip", "pysomeip", "someipy", "opensomeip"}

// reason is why a peer has nothing in some rows.
type reason struct {
	peer string
	role Role // of the peer; empty: both
	what []What
	why  string
}

var protected = []What{ProtectedP01, ProtectedP04, ProtectedP07}

var reasons = []reason{
	{"pysomeip", "", []What{MulticastOf}, "joins no eventgroup's multicast group and sends to none"},
	{"pysomeip", "", []What{SegmentedCall, SegmentedOf}, "has no TP"},
	{"pysomeip", "", protected, "has no E2E protection"},
	{"pysomeip", "", []What{SecondAddress}, "binds the SD group with SO_REUSEPORT alone; were that set here, too, one of our networks that share a group would hear nothing"},
	{"someipy", "", []What{FireAndForget}, "neither sends requests without return nor hands them to its application"},
	{"someipy", Use, []What{Errors}, "drops messages of type ERROR"},
	{"someipy", "", []What{Fields}, "has no fields: nothing is sent to a new subscriber"},
	{"someipy", "", []What{MulticastOf}, "joins no eventgroup's multicast group and sends to none"},
	{"someipy", "", []What{SegmentedCall, SegmentedOf}, "has no TP"},
	{"someipy", "", protected, "has no E2E protection"},
	{"opensomeip", Serve, []What{EventsOf, Fields, MulticastOf, SegmentedOf}, "as server acknowledges subscriptions, but its binding does not say whose"},
	{"opensomeip", Use, []What{EventsOf, Fields, MulticastOf, SegmentedOf}, "as client subscribes with the port of service discovery, where it takes no events"},
	{"opensomeip", "", protected, "has no events to protect, see above; its profiles are of its own making"},
}

// limits are what holds for all that a peer does.
var limits = map[string]string{
	"someipy": "IPv4 only; serves methods or events but not both in one service, as its daemon fails on subscriptions to a " +
		"service that has methods; sends an event to the subscribers of every eventgroup; " +
		"as client may keep a TCP connection that was reset, so that only UDP is shown after a restart",
	"opensomeip": "IPv4; offers one endpoint, which is UDP; as client it does not open a lost TCP connection again, so restarts are on UDP",
	"pysomeip":   "UDP only; as server its application has one error code (0x09), as client it takes those of the protocol only",
}

func whyNot(peer string, role Role, what What) string {
	for _, r := range reasons {
		if r.peer != peer || r.role != "" && r.role != role {
			continue
		}
		for _, w := range r.what {
			if w == what {
				return r.why
			}
		}
	}
	return ""
}
