package cores_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"carisma.dev/gateway/interop/cores"
)

func TestPin(t *testing.T) {
	var before, pinned, after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &before))
	one, err := cores.First(1)
	require.NoError(t, err)
	release, err := cores.Pin(one...)
	require.NoError(t, err)
	require.NoError(t, unix.SchedGetaffinity(0, &pinned))
	require.Equal(t, 1, pinned.Count())
	require.True(t, pinned.IsSet(one[0]))
	require.NoError(t, release())
	require.NoError(t, unix.SchedGetaffinity(0, &after))
	require.Equal(t, before, after)

	_, err = cores.First(before.Count() + 1)
	require.ErrorContains(t, err, "cores are needed")
	_, err = cores.Pin(1023)
	require.ErrorContains(t, err, "no core 1023")
}
