package grpcadapter

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/protos/carismav1"
)

var withMeta = &model.Event{MetaNumber: 1000}

func sample() bridge.Item {
	return bridge.Item{
		Payload: protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 7),
		Session: math.MaxUint16, Source: "n/1.2.3.4:5", Gap: math.MaxUint32, Initial: true,
		E2E:      carismav1.E2EStatus_E2E_WRONG_SEQUENCE,
		Received: time.Unix(1700000000, 999999999),
	}
}

func TestMetaIsEventMeta(t *testing.T) {
	b := appendMeta(nil, withMeta, sample())
	num, typ, n := protowire.ConsumeTag(b)
	require.EqualValues(t, 1000, num)
	require.Equal(t, protowire.BytesType, typ)
	body, _ := protowire.ConsumeBytes(b[n:])
	var got carismav1.EventMeta
	require.NoError(t, proto.Unmarshal(body, &got))
	want := &carismav1.EventMeta{
		Session: math.MaxUint16, Source: "n/1.2.3.4:5", Gap: math.MaxUint32, Initial: true,
		E2E:      carismav1.E2EStatus_E2E_WRONG_SEQUENCE,
		Received: timestamppb.New(sample().Received),
	}
	require.Empty(t, cmp.Diff(want, &got, protocmp.Transform()))
	require.Empty(t, appendMeta(nil, &model.Event{}, sample()), "the message has no meta")
}

func TestSplitMetaInvertsAppendMeta(t *testing.T) {
	want := sample()
	msg := appendMeta(want.Payload, withMeta, want)
	require.Equal(t, want, splitMeta(msg, withMeta))
	// Arguments may follow.
	more := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "x")
	got := splitMeta(append(msg[:len(msg):len(msg)], more...), withMeta)
	require.Equal(t, append(want.Payload, more...), got.Payload)
	require.Equal(t, want.Session, got.Session)
	// A native service sends none.
	require.Equal(t, bridge.Item{Payload: want.Payload}, splitMeta(want.Payload, withMeta))
	require.Equal(t, bridge.Item{Payload: msg}, splitMeta(msg, &model.Event{}))
}

func FuzzSplitMeta(f *testing.F) {
	it := sample()
	f.Add(appendMeta(it.Payload, withMeta, it))
	f.Add(it.Payload)
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, msg []byte) {
		got := splitMeta(msg, withMeta)
		if len(got.Payload) > len(msg) {
			t.Fatalf("%d bytes of arguments in a message of %d", len(got.Payload), len(msg))
		}
	})
}
