package matrix

// What is a row of the matrix.
type What string

// The rows.
const (
	Methods       What = "methods"
	FireAndForget What = "fire and forget"
	Errors        What = "errors"
	EventsOf      What = "events"
	Fields        What = "fields, with their initial value"
	MulticastOf   What = "multicast eventgroup"
	SegmentedCall What = "TP, 5 000 B requests and responses"
	SegmentedOf   What = "TP, 5 000 B events"
	ProtectedP01  What = "E2E P01 events"
	ProtectedP04  What = "E2E P04 events"
	ProtectedP07  What = "E2E P07 events"
	OursFirst     What = "ours started first"
	TheirsFirst   What = "theirs started first"
	OursKilled    What = "ours killed and restarted"
	TheirsKilled  What = "theirs killed and restarted"
	SecondAddress What = "both in one namespace, ours on a second address"
)

// Rows are all of them, in the order of the page.
var Rows = []What{
	Methods, FireAndForget, Errors, EventsOf, Fields, MulticastOf, SegmentedCall, SegmentedOf,
	ProtectedP01, ProtectedP04, ProtectedP07, OursFirst, TheirsFirst, OursKilled, TheirsKilled, SecondAddress,
}

// What the delivery of an event shows.
func (e Event) What() What {
	switch {
	case e.Field:
		return Fields
	case e.Multicast:
		return MulticastOf
	case e.TP:
		return SegmentedOf
	case e.ID == EventP01.ID:
		return ProtectedP01
	case e.ID == EventP04.ID:
		return ProtectedP04
	case e.ID == EventP07.ID:
		return ProtectedP07
	default:
		return EventsOf
	}
}
