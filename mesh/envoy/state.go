package envoy

import "time"

// Phase is where in its life the supervised Envoy is.
type Phase string

// The phases.
const (
	Waiting  Phase = "waiting"  // no node id is held yet (CAR-11)
	Starting Phase = "starting" // started, not yet LIVE
	Live     Phase = "live"     // LIVE: what it serves is what ADS gave it
	Draining Phase = "draining" // taking leave of its callers
	Failed   Phase = "failed"   // ended or did not start; started again after a while
	Left     Phase = "left"     // runs on without its gateway
	Stopped  Phase = "stopped"
)

// State is a moment of the supervised Envoy.
type State struct {
	Phase    Phase     `json:"phase"`
	Since    time.Time `json:"since"`
	Reason   string    `json:"reason,omitempty"` // of a failure: how it ended and its last errors
	PID      int       `json:"pid,omitempty"`
	NodeID   string    `json:"node_id,omitempty"`
	Program  string    `json:"program"`
	Version  string    `json:"version"`
	Adopted  bool      `json:"adopted"`  // started by an earlier run of the gateway
	Restarts int       `json:"restarts"` // times it ended without being told to
}

// State returns the present state.
func (s *Supervisor) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *Supervisor) enter(phase Phase, change func(*State)) {
	s.mu.Lock()
	s.state.Phase, s.state.Since, s.state.Reason = phase, time.Now(), ""
	if change != nil {
		change(&s.state)
	}
	state := s.state
	s.mu.Unlock()
	s.log.Info("envoy "+string(phase), "pid", state.PID, "node_id", state.NodeID, "adopted", state.Adopted)
}

func (s *Supervisor) fail(err error) {
	s.mu.Lock()
	s.state.Phase, s.state.Since, s.state.Reason = Failed, time.Now(), err.Error()
	s.state.PID = 0
	s.state.Restarts++
	restarts := s.state.Restarts
	s.mu.Unlock()
	s.log.Error("envoy failed", "error", err, "restarts", restarts)
}
