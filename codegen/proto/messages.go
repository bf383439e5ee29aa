package proto

import (
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/optionsv1"
)

// Numbers of the members of SomeipRpc that say how messages travel.
const (
	requestOption  = 4
	responseOption = 5
	eventOption    = 6
)

// messages reads how the messages of an rpc travel.
func (r *interfaceReader) messages(m protoreflect.MethodDescriptor, o *optionsv1.SomeipRpc, e *model.SOMEIPElement, isEvent bool) {
	if isEvent {
		for number, given := range map[int32]bool{requestOption: o.GetRequest() != nil, responseOption: o.GetResponse() != nil} {
			if given {
				r.add(r.rpcAt(m, someipRPCExtension, number), "event", "%s is an event, which has neither request nor response", m.Name())
			}
		}
	} else if o.GetEvent() != nil {
		r.add(r.rpcAt(m, someipRPCExtension, eventOption), "request and response", "%s is a method", m.Name())
	}
	read := func(number int32, o *optionsv1.SomeipMessage) *model.SOMEIPMessage {
		if o == nil {
			return nil
		}
		mr := messageReader{r, m, number}
		if e.Reliable && (o.GetTp() != nil || o.GetBatch() != nil) {
			r.add(mr.at(), "e2e, and tp and batch without reliable", "%s goes over TCP, where messages need no datagrams", m.Name())
		}
		return &model.SOMEIPMessage{
			TP: mr.tp(o.GetTp()), E2E: mr.e2e(o.GetE2E()),
			Debounce: microseconds(o.GetBatch().GetDebounceUs()), Retention: microseconds(o.GetBatch().GetRetentionUs()),
		}
	}
	e.Request, e.Response, e.Event = read(requestOption, o.GetRequest()), read(responseOption, o.GetResponse()), read(eventOption, o.GetEvent())
}

func microseconds(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }

// messageReader reads one direction of an rpc.
type messageReader struct {
	*interfaceReader
	rpc    protoreflect.MethodDescriptor
	number int32 // of the member of SomeipRpc
}

func (r messageReader) at(below ...int32) model.Position {
	return r.rpcAt(r.rpc, someipRPCExtension, append([]int32{r.number}, below...)...)
}

// What segments may be (TP-2).
const (
	segmentUnit      = 16
	maxSegmentLength = 1392
)

func (r messageReader) tp(o *optionsv1.SomeipTP) *model.SOMEIPTP {
	if o == nil {
		return nil
	}
	if n := o.GetSegmentLength(); n%segmentUnit != 0 || n > maxSegmentLength {
		r.add(r.at(1, 1), "a multiple of 16 up to 1392", "a segment of %d bytes cannot be", n)
	}
	return &model.SOMEIPTP{
		SegmentLength: int(o.GetSegmentLength()), Separation: microseconds(o.GetSeparationUs()), MaxPayload: int(o.GetMaxPayload()),
	}
}

// e2eProfile is what the options of a profile may be (12.3 of the protocol text).
type e2eProfile struct {
	maxDataID uint32 // 0: it has a list
	counter   uint64 // the counter runs below it
}

var e2eProfiles = map[optionsv1.E2EProfile]e2eProfile{
	optionsv1.E2EProfile_P01: {0xFFFF, 15},
	optionsv1.E2EProfile_P02: {0, 16},
	optionsv1.E2EProfile_P04: {0xFFFFFFFF, 1 << 16},
	optionsv1.E2EProfile_P05: {0xFFFF, 1 << 8},
	optionsv1.E2EProfile_P06: {0xFFFF, 1 << 8},
	optionsv1.E2EProfile_P07: {0xFFFFFFFF, 1 << 32},
	optionsv1.E2EProfile_P11: {0xFFFF, 15},
	optionsv1.E2EProfile_P22: {0, 16},
	optionsv1.E2EProfile_P44: {0xFFFFFFFF, 1 << 16},
}

// Numbers of the members of SomeipE2E.
const (
	e2eProfileOption = iota + 1
	e2eDataID
	e2eDataIDMode
	e2eDataIDList
	e2eOffset
	_ // min_length
	e2eMaxLength
	e2eMaxDelta
	_ // strict
	e2eVsomeip
	e2eDeliverFailed
)

// maxE2EOffset keeps the E2E header within what every message can have.
const maxE2EOffset = 1 << 16

func (r messageReader) e2e(o *optionsv1.SomeipE2E) *model.SOMEIPE2E {
	if o == nil {
		return nil
	}
	at := func(member int32) model.Position { return r.at(2, member) }
	p, ok := e2eProfiles[o.GetProfile()]
	if !ok {
		r.add(at(e2eProfileOption), "P01, P02, P04, P05, P06, P07, P11, P22 or P44", "there is no E2E profile %d", o.GetProfile())
		return nil
	}
	r.dataID(o, p)
	switch {
	case o.GetMaxLength() != 0 && o.GetMaxLength() < o.GetMinLength():
		r.add(at(e2eMaxLength), "min_length or more", "max_length %d is below min_length %d", o.GetMaxLength(), o.GetMinLength())
	case o.GetOffset() > maxE2EOffset:
		r.add(at(e2eOffset), "up to 65536", "an E2E header %d bytes into the payload", o.GetOffset())
	case uint64(o.GetMaxDelta()) >= p.counter:
		r.add(at(e2eMaxDelta), "less than the counter's range", "max_delta %d, where the counter of %v has %d values", o.GetMaxDelta(), o.GetProfile(), p.counter)
	}
	if o.GetVsomeip() {
		switch o.GetProfile() {
		case optionsv1.E2EProfile_P01, optionsv1.E2EProfile_P04, optionsv1.E2EProfile_P05, optionsv1.E2EProfile_P07:
		default:
			r.add(at(e2eVsomeip), "P01, P04, P05 or P07 with vsomeip", "vsomeip has no %v", o.GetProfile())
		}
	}
	if o.GetDeliverFailed() && r.number != eventOption {
		r.add(at(e2eDeliverFailed), "deliver_failed on events", "a request or answer that fails its check is never taken")
	}
	e := &model.SOMEIPE2E{
		Profile: uint8(o.GetProfile()), DataID: o.GetDataId(), DataIDMode: dataIDModes[o.GetDataIdMode()],
		Offset: int(o.GetOffset()), MinLength: int(o.GetMinLength()), MaxLength: int(o.GetMaxLength()), MaxDelta: o.GetMaxDelta(),
		Strict: o.GetStrict(), Vsomeip: o.GetVsomeip(), DeliverFailed: o.GetDeliverFailed(),
	}
	copy(e.DataIDList[:], o.GetDataIdList())
	return e
}

var dataIDModes = map[optionsv1.E2EDataIDMode]model.E2EDataIDMode{
	optionsv1.E2EDataIDMode_E2E_DATA_ID_MODE_UNSPECIFIED: model.E2EBoth,
	optionsv1.E2EDataIDMode_BOTH:                         model.E2EBoth,
	optionsv1.E2EDataIDMode_ALT:                          model.E2EAlt,
	optionsv1.E2EDataIDMode_LOW:                          model.E2ELow,
	optionsv1.E2EDataIDMode_NIBBLE:                       model.E2ENibble,
}

// dataID checks what stands for the data that is protected.
func (r messageReader) dataID(o *optionsv1.SomeipE2E, p e2eProfile) {
	at := func(member int32) model.Position { return r.at(2, member) }
	name, limit := o.GetProfile(), p.maxDataID
	mode, known := dataIDModes[o.GetDataIdMode()]
	if mode == model.E2ENibble {
		limit = min(limit, 0xFFF)
	}
	switch {
	case p.maxDataID == 0 && o.GetDataId() != 0:
		r.add(at(e2eDataID), "data_id_list", "%v has a list of data ids", name)
	case p.maxDataID == 0 && len(o.GetDataIdList()) != 16:
		r.add(at(e2eDataIDList), "16 bytes", "data_id_list has %d bytes", len(o.GetDataIdList()))
	case p.maxDataID != 0 && len(o.GetDataIdList()) != 0:
		r.add(at(e2eDataIDList), "data_id", "%v has one data id", name)
	case o.GetDataId() > limit:
		r.add(at(e2eDataID), "up to "+hex(limit), "data_id %s does not fit %v", hex(o.GetDataId()), name)
	}
	switch at := at(e2eDataIDMode); {
	case !known:
		r.add(at, "BOTH, ALT, LOW or NIBBLE", "there is no data_id_mode %d", o.GetDataIdMode())
	case mode != model.E2EBoth && name != optionsv1.E2EProfile_P01 && name != optionsv1.E2EProfile_P11:
		r.add(at, "data_id_mode with P01 and P11", "%v has no modes", name)
	case name == optionsv1.E2EProfile_P11 && (mode == model.E2EAlt || mode == model.E2ELow):
		r.add(at, "BOTH or NIBBLE", "P11 has no mode %v", o.GetDataIdMode())
	}
}
