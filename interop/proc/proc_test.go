package proc

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nobody is above the largest process id that Linux gives.
const nobody = 1 << 23

func TestProcess(t *testing.T) {
	rss, anonymous, err := Memory(os.Getpid())
	require.NoError(t, err)
	require.Positive(t, anonymous)
	require.Greater(t, rss, anonymous)

	before, err := CPU(os.Getpid())
	require.NoError(t, err)
	require.Positive(t, before)
	require.Eventually(t, func() bool { // waiting takes some, too
		after, err := CPU(os.Getpid())
		return err == nil && after > before
	}, 10*time.Second, time.Millisecond)

	switches, err := Switches(os.Getpid())
	require.NoError(t, err)
	require.Positive(t, switches)
}

func TestNoProcess(t *testing.T) {
	_, _, err := Memory(nobody)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = CPU(nobody)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Switches(nobody)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestNoField(t *testing.T) {
	_, err := field("/proc/self/status", "NoSuchField:")
	require.ErrorContains(t, err, "/proc/self/status: no NoSuchField:")
}
