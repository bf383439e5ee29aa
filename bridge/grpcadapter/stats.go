package grpcadapter

import "sync/atomic"

// WatchStats is what a [Server] counts of watches.
type WatchStats struct {
	Open      int64  `json:"open"`       // now
	ItemsLost uint64 `json:"items_lost"` // since the start, to watchers that read too slowly
}

// watching counts watches.
type watching struct {
	open atomic.Int64
	lost atomic.Uint64
}

// WatchStats returns how many watches are open, and what watchers lost.
func (s *Server) WatchStats() WatchStats {
	return WatchStats{Open: s.watching.open.Load(), ItemsLost: s.watching.lost.Load()}
}
