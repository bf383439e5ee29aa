package xds

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// CAR-31: a service that moves keeps an endpoint at every moment: what is given
// goes out, and what is taken only with its acknowledgement.
func TestMakeBeforeBreak(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		r.apply(endpoints(t, "s/local", 1), endpoints(t, "s/remote"))
		p := r.connect(theNode, nil)
		p.ask(eds, "s/local", "s/remote")
		require.Equal(t, []string{"s/local s/remote"}, p.news())

		p.hush()
		r.apply(endpoints(t, "s/local"), endpoints(t, "s/remote", 2))
		require.Equal(t, []string{"s/remote"}, p.news())
		p.speak()
		require.Equal(t, []string{"s/local"}, p.news())

		// And back. Where nothing is given, what is taken goes at once.
		r.apply(endpoints(t, "s/local", 1), endpoints(t, "s/remote"))
		require.Equal(t, []string{"s/local", "s/remote"}, p.news())
		r.apply(endpoints(t, "s/local"))
		require.Equal(t, []string{"s/local"}, p.news())
	})
}

// waitFor runs Await in the background.
func (r *rig) waitFor(version uint64, timeout time.Duration) (result func() (acknowledged, late []string), done func() bool) {
	ended := make(chan struct{})
	var acknowledged, late []string
	go func() {
		defer close(ended)
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		acknowledged, late = r.cache.Await(ctx, version, "s")
	}()
	return func() ([]string, []string) {
			<-ended
			return acknowledged, late
		}, func() bool {
			synctest.Wait()
			select {
			case <-ended:
				return true
			default:
				return false
			}
		}
}

func TestAwait(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		r.cache.SetNode("away", "center", true)
		p := r.connect(theNode, nil)
		p.ask(cds)
		p.news()

		// The registry is ahead of the cache, then the proxy of the cache.
		result, done := r.waitFor(7, time.Minute)
		require.False(t, done())
		p.hush()
		r.apply(cluster(t, "s"), cluster(t, "s/remote"), endpoints(t, "s/remote", 1))
		require.False(t, done())
		p.speak()
		require.False(t, done(), "the endpoints are not asked for yet")
		p.ask(eds, "s/remote")
		require.True(t, done())
		acknowledged, late := result()
		require.Equal(t, []string{"rear"}, acknowledged, "a proxy that is not there is not waited for")
		require.Empty(t, late)

		// Somebody else's changes are no matter.
		p.hush()
		r.apply(cluster(t, "other"))
		_, done = r.waitFor(7, time.Minute)
		require.True(t, done())
		p.speak()
		p.news()

		// A proxy that does not answer is late; one that goes is not.
		p.hush()
		r.apply(endpoints(t, "s/remote", 2))
		result, _ = r.waitFor(7, time.Second)
		_, late = result()
		require.Equal(t, []string{"rear"}, late)
		_, done = r.waitFor(7, time.Minute)
		require.False(t, done())
		p.end()
		require.True(t, done())
	})
}

// What a proxy refuses keeps nobody waiting.
func TestAwaitRefused(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		p := r.connect(theNode, nil)
		bad := cluster(t, "s")
		p.refuse(bad)
		p.ask(cds)
		p.news()
		r.apply(bad)
		result, _ := r.waitFor(7, time.Minute)
		acknowledged, late := result()
		require.Equal(t, []string{"rear"}, acknowledged)
		require.Empty(t, late)
	})
}

// A proxy whose new stream says that it has all is sent nothing and acknowledges
// nothing: those who wait for it are told by its request.
func TestAwaitWhoComesBackWithAll(t *testing.T) {
	bubble(t, func(r *rig) {
		t := r.t
		r.ready()
		r.apply(endpoints(t, "s/local", 1))
		p := r.connect(theNode, nil)
		p.ask(eds, "s/local")
		require.Equal(t, []string{"s/local"}, p.news())
		p.end()
		<-p.ended
		synctest.Wait()

		news, unlisten := r.cache.listen()
		defer unlisten()
		back := r.connect(theNode, p.held)
		back.ask(eds, "s/local")
		require.Empty(t, back.news())
		select {
		case <-news:
		default:
			require.Fail(t, "nobody is told")
		}
	})
}
