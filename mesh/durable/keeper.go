package durable

import (
	"context"
	"time"
)

// keepInterval is the least time between two writes of a kept file: the disk of a
// vehicle is flash.
const keepInterval = time.Second

// Keeper keeps a file as something that changes, without a write for each change.
type Keeper struct {
	path    string
	content func() ([]byte, error)
	failed  func(error)
	changed chan struct{}
}

// NewKeeper returns a Keeper that Run runs. The content is asked for in Run; failed
// hears of each write that did not succeed, which the next change repeats.
func NewKeeper(path string, content func() ([]byte, error), failed func(error)) *Keeper {
	return &Keeper{path: path, content: content, failed: failed, changed: make(chan struct{}, 1)}
}

// Changed says that the content is another one. It does not wait, and may be called
// concurrently, before and while Run runs.
func (k *Keeper) Changed() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Run writes the file when the content changed, at most once a second, until ctx
// ends; then what is not written yet.
func (k *Keeper) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			select {
			case <-k.changed:
				k.write()
			default:
			}
			return
		case <-k.changed:
		}
		k.write()
		rest := time.NewTimer(keepInterval)
		select {
		case <-ctx.Done():
			rest.Stop()
		case <-rest.C:
		}
	}
}

func (k *Keeper) write() {
	data, err := k.content()
	if err == nil {
		err = WriteFile(k.path, data)
	}
	if err != nil {
		k.failed(err)
	}
}
