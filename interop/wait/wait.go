// Package wait lets time pass.
package wait

import (
	"context"
	"time"
)

// For returns after d, or when ctx ends with the error of ctx.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
