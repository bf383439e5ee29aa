package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"carisma.dev/gateway/interop/faults/record"
)

// readInterval is how often the log of a program that is a load is read.
const readInterval = 50 * time.Millisecond

// runProgram reads the records that a program writes to its log, from where it
// ends now, until ctx ends.
func runProgram(ctx context.Context, path string, loads []*loading) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	var rest []byte
	tick := time.NewTicker(readInterval)
	defer tick.Stop()
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // the rest of the line is not written yet
			rest = append(rest, line...)
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
			continue
		}
		if err != nil {
			return err
		}
		line = append(rest, line...)
		rest = nil
		if !bytes.HasPrefix(line, []byte("{")) {
			continue // its log
		}
		var l record.Line
		if err := json.Unmarshal(line, &l); err != nil {
			return err
		}
		for _, load := range loads {
			switch {
			case load.Of == Calls && l.Call != nil:
				load.call(*l.Call)
			case load.Of == Events && l.Turn != nil:
				load.turn(*l.Turn)
			}
		}
	}
}
