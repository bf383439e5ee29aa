// Cabin-cluster is the instrument cluster of the sample vehicle: a SOME/IP
// client of the trip computer. It plays each call once and prints what it saw;
// README.md of the vehicle says what that is.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/vehicles/component"
)

// stepTimeout bounds each wait.
const stepTimeout = 10 * time.Second

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := run(context.Background(), log); err != nil {
		fmt.Fprintln(os.Stderr, "cabin-cluster:", err)
		os.Exit(1)
	}
}

var clientIDs = runtime.Range{First: 0x1200, Last: 0x12ff}

func run(ctx context.Context, log *slog.Logger) (err error) {
	stack, network, err := component.Start(clientIDs, log)
	if err != nil {
		return err
	}
	defer func() {
		if closed := stack.Close(); err == nil {
			err = closed
		}
	}()
	trip, err := newTripClient(network)
	if err != nil {
		return err
	}
	defer trip.close()
	for _, step := range []func(context.Context) (string, error){
		trip.find,
		func(ctx context.Context) (string, error) { return trip.leg(ctx, "commute") },
		func(ctx context.Context) (string, error) { return trip.leg(ctx, "nowhere") },
		func(ctx context.Context) (string, error) { return trip.leg(ctx, "") },
		func(ctx context.Context) (string, error) { return trip.average(ctx, 20, 40, 60) },
		func(ctx context.Context) (string, error) { return trip.average(ctx) },
		func(ctx context.Context) (string, error) { return trip.average(ctx, 500) },
		trip.consumption,
	} {
		stepCtx, cancel := context.WithTimeout(ctx, stepTimeout)
		line, err := step(stepCtx)
		cancel()
		if err != nil {
			return err
		}
		fmt.Println(line)
	}
	return nil
}
