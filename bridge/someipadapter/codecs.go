package someipadapter

import (
	"fmt"

	"carisma.dev/gateway/bridge/transcode"
	"carisma.dev/gateway/codegen/model"
)

// codecs translates the messages of one interface. It is immutable.
type codecs struct {
	methods    map[*model.Method]*methodCodec
	events     map[*model.Event]*eventCodec
	methodByID map[uint16]*methodCodec
	eventByID  map[uint16]*eventCodec
	problems   []string // why an element is left out
}

type methodCodec struct {
	*model.Method
	in, out *transcode.Codec // out is nil where nothing is answered
}

type eventCodec struct {
	*model.Event
	args *transcode.Codec
}

// newCodecs compiles what can be translated. An element without SOME/IP id, or
// whose types cannot be translated, is left out.
func newCodecs(iface *model.Interface) *codecs {
	c := &codecs{
		methods:    map[*model.Method]*methodCodec{},
		events:     map[*model.Event]*eventCodec{},
		methodByID: map[uint16]*methodCodec{},
		eventByID:  map[uint16]*eventCodec{},
	}
	for _, m := range iface.AllMethods() {
		mc, err := newMethodCodec(m)
		if err != nil {
			c.problems = append(c.problems, fmt.Sprintf("%s: %v", m.RPC, err))
			continue
		}
		c.methods[m] = mc
		c.methodByID[m.SOMEIP.ID] = mc
	}
	for _, e := range iface.AllEvents() {
		ec, err := newEventCodec(e)
		if err != nil {
			c.problems = append(c.problems, fmt.Sprintf("%s: %v", e.RPC, err))
			continue
		}
		c.events[e] = ec
		c.eventByID[e.SOMEIP.ID] = ec
	}
	return c
}

func newMethodCodec(m *model.Method) (*methodCodec, error) {
	if m.SOMEIP == nil {
		return nil, errNoID
	}
	in, err := transcode.Compile(m.In)
	if err != nil {
		return nil, err
	}
	mc := &methodCodec{Method: m, in: in}
	if !m.FireAndForget {
		mc.out, err = transcode.Compile(m.Out)
	}
	return mc, err
}

func newEventCodec(e *model.Event) (*eventCodec, error) {
	if e.SOMEIP == nil {
		return nil, errNoID
	}
	if len(e.SOMEIP.Eventgroups) == 0 {
		return nil, errNoEventgroup
	}
	args, err := transcode.Compile(e.Args)
	return &eventCodec{e, args}, err
}
