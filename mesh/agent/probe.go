package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

const (
	// ProbeInterval is how often a native service is asked for its health.
	ProbeInterval = 250 * time.Millisecond
	// probeTimeout is shorter, so that probes do not overtake each other.
	probeTimeout = 200 * time.Millisecond
	// A service that was up is down once failures in a row weigh probeFall: two
	// refused connections, or four probes without an answer, for a busy machine
	// is slow to answer. It is up with the first success.
	probeFall  = 4
	refused    = 2
	unanswered = 1
)

// Probe asks a native gRPC service for its health until ctx ends and calls report
// with each change; the first answer is one. A server that knows gRPC health is
// asked for the interface, then for the server as a whole; one that does not is
// up while it answers at all. address is host:port or unix:path.
func Probe(ctx context.Context, address, interfaceName string, report func(up bool, reason string)) error {
	target := address
	if !strings.HasPrefix(address, "unix:") {
		target = "passthrough:///" + address
	}
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: ProbeInterval / 2, Multiplier: 1, MaxDelay: ProbeInterval / 2},
			MinConnectTimeout: ProbeInterval,
		}),
		grpc.WithIdleTimeout(0),
	)
	if err != nil {
		return fmt.Errorf("address %s of %s: %w", address, interfaceName, err)
	}
	defer conn.Close()
	p := prober{health: grpc_health_v1.NewHealthClient(conn), service: interfaceName}
	tick := time.NewTicker(ProbeInterval)
	defer tick.Stop()
	var v verdict
	for {
		got := p.ask(ctx)
		if ctx.Err() != nil {
			return nil
		}
		v.take(got, report)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

type prober struct {
	health  grpc_health_v1.HealthClient
	service string // asked for; emptied where the server does not know it
}

// answer is the result of one probe.
type answer struct {
	up     bool
	reason string
	weight int // of a failure
}

func (p *prober) ask(ctx context.Context) answer {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	resp, err := p.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: p.service})
	if status.Code(err) == codes.NotFound && p.service != "" {
		p.service = ""
		resp, err = p.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	}
	switch status.Code(err) {
	case codes.OK:
		if s := resp.GetStatus(); s != grpc_health_v1.HealthCheckResponse_SERVING {
			return answer{reason: "the service says " + s.String(), weight: probeFall}
		}
		return answer{up: true}
	case codes.Unavailable:
		return answer{reason: status.Convert(err).Message(), weight: refused}
	case codes.DeadlineExceeded, codes.Canceled:
		return answer{reason: fmt.Sprintf("no answer within %v", probeTimeout), weight: unanswered}
	default:
		return answer{up: true} // it answers, if not about its health
	}
}

// verdict turns probes into up and down.
type verdict struct {
	known, up bool
	failed    int // weight of the failures since the last success
}

func (v *verdict) take(a answer, report func(bool, string)) {
	if a.up {
		v.failed = 0
	} else {
		v.failed += a.weight
		if v.known && v.up && v.failed < probeFall {
			return
		}
	}
	if v.known && v.up == a.up {
		return // the reason of the first failure stays
	}
	v.known, v.up = true, a.up
	report(a.up, a.reason)
}
