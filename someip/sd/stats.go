package sd

// Stats counts what a Machine received, sent and dropped.
type Stats struct {
	Received, Sent uint64 // messages

	Own           uint64 // messages from our own address
	SourcePort    uint64 // messages from a port other than that of service discovery (case 73)
	SourceAddress uint64 // messages from outside of the subnet
	Malformed     uint64 // messages that could not be parsed
	Duplicates    uint64 // identical copies of a message just received (RB-7)
	PeerLimit     uint64 // messages of a peer for which there was no room
	SessionGaps   uint64 // messages that must have been lost before one that arrived (RB-8)
	NoSession     uint64 // messages without session id
	Reboots       uint64 // restarts of peers

	BadOptions      uint64 // messages with a malformed option
	UnknownEntries  uint64 // entries of unknown type
	BadEntries      uint64 // entries with reserved ids, option index out of range or contradictory options
	OwnEndpoint     uint64 // offers and subscriptions that name our own address as theirs
	BadEndpoint     uint64 // offers and subscriptions with another implausible endpoint (CL-2)
	IgnoredFinds    uint64 // Finds without unicast flag, or for what is not announced yet (SV-5, SV-6)
	Conflicts       uint64 // offers of what somebody else offers
	OtherMinor      uint64 // offers of a minor version that is not accepted (CL-7)
	OfferLimit      uint64 // offers for which there was no room
	ConnectionLimit uint64 // TCP connections of peers for which there was no room
	MulticastEvents uint64 // eventgroup entries received by multicast (case 86)
	UnknownAcks     uint64 // Acks and Nacks that answer nothing
	UnknownStops    uint64 // StopOffers and StopSubscribes of what is not known
	NacksSent       uint64
	NacksSuppressed uint64 // not sent because there were too many

	EntryLimit         uint64 // entries of peers that sent too many in a second
	AnswersSuppressed  uint64 // answers to Finds of peers that asked too often
	ReturnsSuppressed  uint64 // offers of instances that came and went too often
	RenewalsSuppressed uint64 // offers that came too often to subscribe again with each
}
