package status

import (
	"testing"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"carisma.dev/gateway/codegen/protos/carismav1"
)

// FuzzDetail decodes a status whose detail came from outside: whatever it says,
// the answer on SOME/IP is one that may be sent, and the same after a second trip.
func FuzzDetail(f *testing.F) {
	for _, d := range []*carismav1.ErrorDetail{
		{},
		{ReturnCode: 0x21, Exception: true, Payload: []byte{1}, ApplicationError: "BLOWER_BLOCKED"},
		{ReturnCode: 0xFFFFFFFF},
		{DbusName: "org.freedesktop.DBus.Error.Timeout"},
		{FieldPath: "vents[2].opening", Reason: "300"},
	} {
		b, err := proto.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint32(codes.Unavailable), b)
	}
	f.Add(uint32(0), []byte{0x42, 0x00, 0xFF})
	f.Fuzz(func(t *testing.T, code uint32, detail []byte) {
		err := grpcstatus.ErrorProto(&spb.Status{Code: int32(code), Details: []*anypb.Any{
			{TypeUrl: "type.googleapis.com/carisma.v1.ErrorDetail", Value: detail},
		}})
		e := FromGRPC(err)
		if e == nil {
			if code != 0 {
				t.Fatalf("an error with code %d is none", code)
			}
			return
		}
		rc, payload := e.SOMEIP(false)
		if rc == 0 || !rc.Valid() {
			t.Fatalf("return code %v", rc)
		}
		if e.DBus() == "" {
			t.Fatal("no D-Bus name")
		}
		rc2, payload2 := FromGRPC(e.GRPC().Err()).SOMEIP(false)
		if rc != rc2 || string(payload) != string(payload2) {
			t.Fatalf("%v %x came back as %v %x", rc, payload, rc2, payload2)
		}
	})
}
