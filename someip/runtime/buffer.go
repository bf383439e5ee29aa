package runtime

import (
	"sync"

	"carisma.dev/gateway/someip"
)

// keepBuffer is the largest message buffer that is kept for reuse, in bytes.
const keepBuffer = 128 << 10

// buffers are what messages are encoded into.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, someip.MaxUDPDatagram)
	return &b
}}

// release gives a buffer back.
func release(b *[]byte) {
	if cap(*b) <= keepBuffer {
		buffers.Put(b)
	}
}
