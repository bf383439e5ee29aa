package scenario

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// stream is an open watch. Its items are read as they come, so that a step that
// looks elsewhere does not hold up the sender.
type stream struct {
	items  chan string // JSON; closed at the end of the stream
	err    error       // of the end, valid once items is closed
	cancel context.CancelFunc
}

// streamBacklog is how many items may wait for a step that looks at them.
const streamBacklog = 1024

func startStream(s grpc.ClientStream, output protoreflect.MessageDescriptor, cancel context.CancelFunc) *stream {
	w := &stream{items: make(chan string, streamBacklog), cancel: cancel}
	go func() {
		defer close(w.items)
		for {
			out := dynamicpb.NewMessage(output)
			if w.err = s.RecvMsg(out); w.err != nil {
				return
			}
			text, err := toJSON(out)
			if err != nil {
				w.err = err
				return
			}
			select {
			case w.items <- text:
			case <-s.Context().Done():
			}
		}
	}()
	return w
}

// close ends the stream and waits for its reader.
func (w *stream) close() {
	w.cancel()
	for range w.items { // emptied until closed
	}
}
