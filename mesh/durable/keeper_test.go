package durable_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/durable"
)

func TestKeeper(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kept")
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var text string
		var broken error
		asked, failures := 0, 0
		k := durable.NewKeeper(path, func() ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return []byte(text), broken
		}, func(err error) {
			require.ErrorContains(t, err, "broken")
			failures++
		})
		set := func(s string, err error) {
			mu.Lock()
			defer mu.Unlock()
			text, broken = s, err
			k.Changed()
		}
		kept := func() string {
			synctest.Wait()
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			return string(data)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { k.Run(ctx) })
		synctest.Wait()
		require.NoFileExists(t, path, "nothing changed yet")

		set("first", nil)
		require.Equal(t, "first", kept())
		set("second", nil)
		set("third", nil)
		require.Equal(t, "first", kept(), "not within a second")
		time.Sleep(time.Second)
		require.Equal(t, "third", kept())
		require.Equal(t, 2, asked)

		// A write that fails is told and does not end the keeping.
		time.Sleep(time.Second)
		set("", errors.New("broken"))
		require.Equal(t, "third", kept())
		set("fourth", nil)
		time.Sleep(time.Second)
		require.Equal(t, "fourth", kept())
		require.Equal(t, 1, failures)

		set("last", nil)
		cancel()
		run.Wait()
		require.Equal(t, "last", kept(), "what is left when it ends")
	})
}
