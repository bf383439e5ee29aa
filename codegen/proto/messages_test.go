package proto_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/proto"
)

// How messages travel is read from the file, and the same from its descriptors, which
// other nodes get.
func TestMessages(t *testing.T) {
	set, err := proto.Load("testdata/good/messages")
	require.NoError(t, err)
	fds := &descriptorpb.FileDescriptorSet{}
	require.NoError(t, protobuf.Unmarshal(set.Descriptors("messages.v1.Camera"), fds))
	carried, err := proto.FromDescriptors(fds)
	require.NoError(t, err)

	for _, s := range []*proto.Set{set, carried} {
		camera := s.Interface("messages.v1.Camera")
		require.NotNil(t, camera)
		require.Equal(t, &model.SOMEIPElement{
			ID: 1,
			Request: &model.SOMEIPMessage{
				E2E: &model.SOMEIPE2E{Profile: 4, DataID: 0x0A0B0C0D, MaxDelta: 1, MinLength: 20, MaxLength: 1000, Offset: 8, Strict: true, Vsomeip: true},
			},
			Response: &model.SOMEIPMessage{
				TP:       &model.SOMEIPTP{SegmentLength: 1024, Separation: 250 * time.Microsecond, MaxPayload: 100_000},
				Debounce: 2 * time.Millisecond, Retention: 5 * time.Millisecond,
			},
		}, camera.Methods[0].SOMEIP)
		require.Equal(t, &model.SOMEIPElement{
			ID: 0x8001, Eventgroups: []uint16{1},
			Event: &model.SOMEIPMessage{
				TP:  &model.SOMEIPTP{},
				E2E: &model.SOMEIPE2E{Profile: 11, DataID: 0x123, DataIDMode: model.E2ENibble, DeliverFailed: true},
			},
		}, camera.Events[0].SOMEIP)
		require.Equal(t, &model.SOMEIPElement{
			ID: 0x8002, Reliable: true, Eventgroups: []uint16{1},
			Event: &model.SOMEIPMessage{E2E: &model.SOMEIPE2E{Profile: 22, DataIDList: [16]byte([]byte("0123456789abcdef"))}},
		}, camera.Fields[0].Notifier.SOMEIP)
		require.Nil(t, camera.Fields[0].Getter.SOMEIP.Response)
	}
}
