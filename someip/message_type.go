package someip

import "fmt"

// MessageType says what a message is and who sends it.
type MessageType uint8

// Message types. The TP variants carry a segment of a message.
const (
	Request         MessageType = 0x00 // from the client, answered by exactly one response or error
	RequestNoReturn MessageType = 0x01 // fire and forget: never answered
	Notification    MessageType = 0x02 // event or notifier, from the server
	Response        MessageType = 0x80
	Error           MessageType = 0x81 // response that carries an exception

	// FlagTP marks a segment.
	FlagTP MessageType = 0x20
)

// Base returns the type without the TP flag.
func (t MessageType) Base() MessageType { return t &^ FlagTP }

// TP reports whether the message is a segment.
func (t MessageType) TP() bool { return t&FlagTP != 0 }

// Known reports whether t, with or without TP flag, is a type in use. The ACK
// types (0x40 and following) are not: they are reserved and nobody sends them.
func (t MessageType) Known() bool {
	switch t.Base() {
	case Request, RequestNoReturn, Notification, Response, Error:
		return true
	default:
		return false
	}
}

// IsReply reports whether the message answers a request.
func (t MessageType) IsReply() bool {
	return t.Base() == Response || t.Base() == Error
}

// String returns the name of the type as in the specification.
func (t MessageType) String() string {
	var name string
	switch t.Base() {
	case Request:
		name = "REQUEST"
	case RequestNoReturn:
		name = "REQUEST_NO_RETURN"
	case Notification:
		name = "NOTIFICATION"
	case Response:
		name = "RESPONSE"
	case Error:
		name = "ERROR"
	default:
		return fmt.Sprintf("0x%02x", uint8(t))
	}
	if t.TP() {
		return "TP_" + name
	}
	return name
}
