package e2e

import "errors"

// What is wrong with protected data. The Err of a [Result] wraps one of the
// first six, with the byte at which the fault was seen.
var (
	ErrShort   = errors.New("e2e: too short")               // ends before the header does, or below MinLength (case 110)
	ErrLong    = errors.New("e2e: too long")                // above MaxLength, or what the length field can express
	ErrLength  = errors.New("e2e: length field is wrong")   // P04, P06, P07, P44
	ErrDataID  = errors.New("e2e: data id is wrong")        // where it is sent: P04, P07, P44, mode Nibble
	ErrCounter = errors.New("e2e: counter is out of range") // P01, P11: 15; of SetCounter
	ErrCRC     = errors.New("e2e: checksum does not match") // also if a data id differs that is not sent
)
