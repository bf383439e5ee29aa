package xds

import (
	"strings"
	"time"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"
)

// Nack is the refusal of a resource by a proxy. It is state of the node, not of
// the stream: the resource stays apart after a reconnect until it changes.
type Nack struct {
	Version string
	Reason  string
	Since   time.Time
}

// maxReason bounds what a proxy may say about a refusal.
const maxReason = 1024

// answered takes what a request says about the response under way.
func (c *Cache) answered(st *stream, sub *subscription, typeURL, nonce string, detail *statuspb.Status) {
	if sub.flight == nil || nonce == "" || nonce != sub.flight.nonce {
		return
	}
	defer c.tell()
	if detail == nil {
		c.counts.Acks++
		sub.acked(time.Now())
		return
	}
	c.counts.Nacks++
	names := len(sub.flight.names)
	alone := sub.refused()
	if alone == "" {
		c.log.Warn("response refused, sending its halves", "node", st.node.name, "type", typeURL,
			"resources", names, "reason", detail.GetMessage())
		return
	}
	set := st.node.sets[typeURL]
	r := set.resources[alone]
	if r == nil {
		return // a removal that is refused leaves nothing to set apart
	}
	reason := clip(detail.GetMessage())
	set.apart[alone] = &Nack{Version: r.Version, Reason: reason, Since: time.Now()}
	c.counts.SetApart++
	c.log.Error("resource refused and set apart", "node", st.node.name, "type", typeURL, "resource", alone, "reason", reason)
}

func clip(s string) string {
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason], "")
}
