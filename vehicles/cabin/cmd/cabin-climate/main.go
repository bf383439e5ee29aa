// Cabin-climate is the climate ECU of the sample vehicle: it offers the
// interface Climate in the instances left and right over SOME/IP.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/component"
)

func main() {
	interval := flag.Duration("interval", 500*time.Millisecond, "time between two AirQuality events")
	flag.Parse()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *interval, log); err != nil {
		fmt.Fprintln(os.Stderr, "cabin-climate:", err)
		os.Exit(1)
	}
}

// clientIDs is the block of an ECU that calls nobody: it stands for the host.
var clientIDs = runtime.Range{First: 0x1400, Last: 0x14ff}

func run(ctx context.Context, interval time.Duration, log *slog.Logger) (err error) {
	stack, network, err := component.Start(clientIDs, log)
	if err != nil {
		return err
	}
	defer func() {
		if closed := stack.Close(); err == nil {
			err = closed
		}
	}()
	var zones []*zone
	for _, z := range []*zone{newLeft(), newRight()} {
		if err := z.offer(network); err != nil {
			return fmt.Errorf("offer %s: %w", z.name, err)
		}
		zones = append(zones, z)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			for _, z := range zones {
				if err := z.sendAirQuality(); err != nil {
					log.Warn("air quality not sent", "zone", z.name, "error", err)
				}
			}
		}
	}
}
