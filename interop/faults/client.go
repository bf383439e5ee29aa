package faults

import (
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/interop/faults/record"
	"carisma.dev/gateway/vehicles/run"
)

// rawCodec passes message bytes: a load neither makes nor reads more of them than
// it judges.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (rawCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

// Reconnects of a client are its own affair; these are quick, so that what is
// measured is the mesh.
const (
	reconnectMin = 20 * time.Millisecond
	reconnectMax = 100 * time.Millisecond
)

// dial connects to the egress listener of an HPC, as a program on it does.
func dial(r *run.Runner, host string) (*grpc.ClientConn, error) {
	h := r.Host(host)
	if h == nil {
		return nil, fmt.Errorf("there is no host %q", host)
	}
	return h.NewClient(r.Egress(host).String(),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: reconnectMin, Multiplier: 1.6, MaxDelay: reconnectMax},
			MinConnectTimeout: time.Second,
		}))
}

// request is a message whose field 1 is a number.
func request(number uint32) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(number))
}

// fieldNumbers of what a load reads.
const (
	numberField  protowire.Number = 1
	programField protowire.Number = 2
	metaField    protowire.Number = 1000
)

// parseItem reads the number and the meta of a stream item.
func parseItem(msg []byte) (turn record.Turn, err error) {
	turn, _, err = parse(msg)
	return turn, err
}

// parse reads the number and the meta of a stream item, or the number and the
// program of an answer.
func parse(msg []byte) (turn record.Turn, program uint32, err error) {
	turn.Kind = record.Item
	for len(msg) > 0 {
		n, typ, size := protowire.ConsumeTag(msg)
		if size < 0 {
			return turn, 0, protowire.ParseError(size)
		}
		msg = msg[size:]
		size = protowire.ConsumeFieldValue(n, typ, msg)
		if size < 0 {
			return turn, 0, protowire.ParseError(size)
		}
		switch {
		case n == numberField && typ == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(msg)
			turn.Number = uint32(v)
		case n == programField && typ == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(msg)
			program = uint32(v)
		case n == metaField && typ == protowire.BytesType:
			raw, _ := protowire.ConsumeBytes(msg)
			meta := &carismav1.EventMeta{}
			if err := proto.Unmarshal(raw, meta); err != nil {
				return turn, 0, err
			}
			turn.Gap, turn.Initial = meta.GetGap(), meta.GetInitial()
		}
		msg = msg[size:]
	}
	return turn, program, nil
}

// outcome returns the code of an error, as gRPC's texts have it, and what it says:
// the reason of the detail, where there is one.
func outcome(err error) (code, reason string) {
	if err == nil {
		return record.OK, ""
	}
	s := status.Convert(err)
	reason = s.Message()
	for _, d := range s.Details() {
		if d, ok := d.(*carismav1.ErrorDetail); ok && d.GetReason() != "" {
			reason = d.GetReason()
		}
	}
	return codeNames[s.Code()], reason
}

var codeNames = map[codes.Code]string{
	codes.Canceled: "CANCELLED", codes.Unknown: "UNKNOWN", codes.InvalidArgument: "INVALID_ARGUMENT",
	codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.NotFound: "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS",
	codes.PermissionDenied: "PERMISSION_DENIED", codes.ResourceExhausted: "RESOURCE_EXHAUSTED",
	codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED", codes.OutOfRange: "OUT_OF_RANGE",
	codes.Unimplemented: "UNIMPLEMENTED", codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE",
	codes.DataLoss: "DATA_LOSS", codes.Unauthenticated: "UNAUTHENTICATED",
}
