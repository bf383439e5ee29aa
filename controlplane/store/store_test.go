package store_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/controlplane/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestRestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "store.db")
	node := store.Node{
		ID: "id", Name: "rear", Address: netip.MustParseAddr("10.0.0.2"),
		Proxy:      &store.Proxy{Ingress: netip.MustParseAddrPort("10.0.0.2:15001"), GatewaySocket: "/run/gw"},
		Registered: time.Unix(1, 2).UTC(), BootTime: 7,
	}
	set := []byte("descriptors")

	s := open(t, path)
	_, epoch, err := s.Nodes()
	require.NoError(t, err)
	node.Epoch = epoch + 1
	require.NoError(t, s.PutNodes(node.Epoch, node))
	require.NoError(t, s.PutDefaults(map[string]string{"a.v1.A": "left.a.v1.a"}))
	hash, err := s.PutDescriptors(set)
	require.NoError(t, err)
	require.NoError(t, s.Close())

	s = open(t, path)
	require.False(t, s.Damaged())
	nodes, epoch, err := s.Nodes()
	require.NoError(t, err)
	require.Equal(t, []store.Node{node}, nodes)
	require.Equal(t, node.Epoch, epoch)
	defaults, err := s.Defaults()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a.v1.A": "left.a.v1.a"}, defaults)
	got, err := s.Descriptors(hash)
	require.NoError(t, err)
	require.Equal(t, set, got)
}

// CAR-55: epochs rise over a lost store.
func TestLostStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path)
	_, before, err := s.Nodes()
	require.NoError(t, err)
	require.NoError(t, s.Close())

	for name, damage := range map[string][]byte{
		"short":   []byte("no store"),
		"garbage": make([]byte, 64<<10),
	} {
		require.NoError(t, os.WriteFile(path, damage, 0o600), name)
		s = open(t, path)
		require.True(t, s.Damaged(), name)
		nodes, epoch, err := s.Nodes()
		require.NoError(t, err, name)
		require.Empty(t, nodes, name)
		require.GreaterOrEqual(t, epoch, before, name)
		require.FileExists(t, path+".damaged", name)
		require.NoError(t, s.Close(), name)
	}
}

func TestOneProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	open(t, path)
	_, err := store.Open(path)
	require.ErrorContains(t, err, "timeout")
}

func TestEpochNeverFalls(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	_, epoch, err := s.Nodes()
	require.NoError(t, err)
	require.NoError(t, s.PutNodes(epoch+9))
	require.NoError(t, s.PutNodes(epoch))
	_, got, err := s.Nodes()
	require.NoError(t, err)
	require.Equal(t, epoch+9, got)
}

func TestSupersededAreBounded(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	_, first, err := s.Nodes()
	require.NoError(t, err)
	var all []store.Node
	for i := range uint64(256) {
		all = append(all, store.Node{ID: string(rune('a'+i%26)) + string(rune('a'+i/26)), Epoch: first + i, Superseded: true})
	}
	require.NoError(t, s.PutNodes(first, all...))
	require.NoError(t, s.PutNodes(first, store.Node{ID: "newest", Epoch: first + 999, Superseded: true}))
	nodes, _, err := s.Nodes()
	require.NoError(t, err)
	require.Len(t, nodes, 256)
	for _, n := range nodes {
		require.NotEqual(t, first, n.Epoch, "the oldest goes")
	}
}

func TestDescriptors(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "store.db"))
	_, err := s.PutDescriptors(make([]byte, store.MaxDescriptorSet+1))
	require.ErrorIs(t, err, store.ErrTooLarge)
	got, err := s.Descriptors("unknown")
	require.NoError(t, err)
	require.Nil(t, got)
	one, err := s.PutDescriptors([]byte("x"))
	require.NoError(t, err)
	again, err := s.PutDescriptors([]byte("x"))
	require.NoError(t, err)
	require.Equal(t, one, again)
}
