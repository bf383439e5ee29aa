package controlplane

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"carisma.dev/gateway/mesh/api/meshv1"
)

// A message that is too long is refused by its length, counted, and harms nobody.
func TestOversizeMessage(t *testing.T) {
	t.Parallel()
	p := startPlane(t, t.TempDir())
	a := p.join(t, "center", "127.0.0.1")
	a.sync(native(climate, "left", "127.0.0.1:1"))
	long := bytes.Repeat([]byte{'x'}, maxMessage)
	_, err := a.services().PutDescriptors(a.ctx(), &meshv1.PutDescriptorsRequest{DescriptorSet: long}, grpc.MaxCallSendMsgSize(2*maxMessage))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	_, err = a.services().Synchronize(a.ctx(), &meshv1.SynchronizeRequest{Services: []*meshv1.ServiceInstance{{Reason: string(long)}}},
		grpc.MaxCallSendMsgSize(2*maxMessage))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	eventually(t, "both are counted", func() bool { return p.Counters()["requests_refused_oversize"] == 2 })
	a.set(native(climate, "right", "127.0.0.1:1"))
	list, err := a.services().ListServices(t.Context(), &meshv1.ListServicesRequest{})
	require.NoError(t, err)
	require.Len(t, list.GetServices(), 2)
}

// A host that registers without end is told so, and its nodes stay bounded; the
// counters are there for carisma status.
func TestRegistrationFlood(t *testing.T) {
	t.Parallel()
	p := startPlane(t, t.TempDir())
	a := p.join(t, "center", "127.0.0.1")
	a.sync()
	nodes := meshv1.NewNodeRegistryClient(p.conn)
	eventually(t, "the flood is refused", func() bool {
		for i := range 200 {
			req := proto.CloneOf(a.req)
			req.Name = fmt.Sprint("rogue-", i)
			if _, err := nodes.Register(t.Context(), req); status.Code(err) == codes.ResourceExhausted {
				return true
			}
		}
		return false
	})
	resp, err := meshv1.NewStatusClient(p.conn).GetProxies(t.Context(), &meshv1.GetProxiesRequest{})
	require.NoError(t, err)
	require.NotZero(t, resp.GetCounters()["requests_refused_too_often"]+resp.GetCounters()["requests_refused_full"])
	a.set(native(climate, "left", "127.0.0.1:1"))
}

// CAR-50: an agent that never gives a digest hears of it by a status of its own.
func TestAgentWithoutDigest(t *testing.T) {
	t.Parallel()
	p := startPlaneWith(t, Config{State: t.TempDir(), Lease: 10 * patience, digestTimeout: 500 * time.Millisecond})
	a := p.join(t, "center", "127.0.0.1")
	stream, err := meshv1.NewNodeRegistryClient(p.conn).KeepAlive(a.ctx())
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.DeadlineExceeded, status.Code(err), err)
	require.Equal(t, uint64(1), p.Counters()["requests_refused_digest_late"])
	_, err = a.services().Update(a.ctx(), &meshv1.UpdateRequest{})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
}
