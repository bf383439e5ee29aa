// Package runtime is the SOME/IP stack that an application uses: it offers
// service instances, observes and calls those of others, and subscribes to
// their events, over several networks at once.
//
// A [Stack] holds one [Network] for each SOME/IP-SD domain. On a network,
// [Network.Offer] makes an instance available and [Network.Client] reaches one
// that another host offers; [Network.Observe] tells which are there.
//
// How the messages of a service travel where a datagram each is not enough is said
// once for both sides, with [Network.Deploy]: segments, end-to-end protection,
// datagrams that several messages share, TLS and DTLS. Service discovery can be left
// out, with [Network.AddStatic] and [ServiceConfig].Unannounced.
//
// Offers, subscriptions and their renewal, restarts of a peer and lost
// connections are handled here: a client or a subscription made once stays
// valid while its instance comes and goes. Everything received from the
// network is checked in the order that the specification gives, counted
// ([Network.Stats]) and, if it cannot be used, dropped.
//
// Callbacks (handlers, observers, event functions) run on the goroutine that
// received the message, so that nothing waits for a scheduler; they must not
// block. Calling back into the package from them is allowed, Close of a stack
// or offering excepted.
//
// Package someiptest has what tests of an application need.
package runtime
