package bridge_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"carisma.dev/gateway/bridge"
	"carisma.dev/gateway/bridge/status"
	"carisma.dev/gateway/codegen/model"
)

// named is a service that answers with its name.
type named struct {
	*fakeService
	name string
}

func (n *named) Invoke(context.Context, *model.Method, []byte) ([]byte, error) {
	return []byte(n.name), nil
}

// CAR-52: calls take turns, a watch stays and fails over, and what is left says why.
func TestPool(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := bridge.NewPool(climate)
		left, right := &named{newFakeService(), "left"}, &named{newFakeService(), "right"}
		require.Equal(t, 1, p.Add("left", left))
		require.Equal(t, 2, p.Add("right", right))
		counts := map[string]int{}
		for range 100 {
			out, err := p.Invoke(t.Context(), climate.Methods[0], nil)
			require.NoError(t, err)
			counts[string(out)]++
		}
		require.Equal(t, map[string]int{"left": 50, "right": 50}, counts)

		var got []string
		ended := make(chan error, 1)
		go func() {
			ended <- p.Watch(t.Context(), airQuality, func(it bridge.Item) { got = append(got, string(it.Payload)) })
		}()
		synctest.Wait()
		publish := func(n *named) { n.publish(airQuality, bridge.Item{Payload: []byte(n.name)}) }
		publish(left)
		publish(right)
		require.Len(t, got, 1, "one of them")
		first, second := left, right
		if got[0] == "right" {
			first, second = right, left
		}
		first.end <- errors.New("gone") // a moment before the news of it
		time.Sleep(time.Millisecond)
		require.Equal(t, 1, p.Remove(first.name, "StopOffer", time.Now()))
		time.Sleep(time.Second)
		synctest.Wait()
		publish(second)
		require.Equal(t, second.name, got[1])

		// A watch that ends though its member is there is the caller's business.
		failed := errors.New("refused")
		second.end <- failed
		require.Equal(t, failed, <-ended)

		require.Zero(t, p.Remove(second.name, "StopOffer", time.Unix(7, 0)))
		_, err := p.Invoke(t.Context(), climate.Methods[0], nil)
		var gone *status.Error
		require.ErrorAs(t, err, &gone)
		require.Equal(t, codes.Unavailable, gone.Code)
		require.Equal(t, "StopOffer", gone.Reason)
		require.Error(t, p.Watch(t.Context(), airQuality, nil))
	})
}
