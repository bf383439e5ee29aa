package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
)

// Transcoding is what one direction of one struct costs, beside protobuf-go's
// generated code on the same message.
type Transcoding struct {
	Fields      int     `json:"fields"`
	Direction   string  `json:"direction"`
	Nanoseconds float64 `json:"ns"`
	Allocations int     `json:"allocs"`
	// Protobuf is the time of the generated Marshal or Unmarshal.
	Protobuf float64 `json:"protobuf_ns"`
	Ratio    float64 `json:"ratio"`
}

// benchLine is a result line of go test -bench -benchmem.
var benchLine = regexp.MustCompile(`(?m)^Benchmark(\w+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op.*\s(\d+) allocs/op`)

// transcoding measures the translators with the benchmarks of their package.
func transcoding(ctx context.Context, root string) ([]Transcoding, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark(Transcode|Protobuf)", "-benchmem", "-count", "3", "./bridge/transcode")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("benchmarks of bridge/transcode: %w: %s%s", err, out, stderr.Bytes())
	}
	times, allocs := map[string][]float64{}, map[string]int{}
	for _, m := range benchLine.FindAllStringSubmatch(string(out), -1) {
		ns, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, err
		}
		times[m[1]] = append(times[m[1]], ns)
		if allocs[m[1]], err = strconv.Atoi(m[3]); err != nil {
			return nil, err
		}
	}
	var rows []Transcoding
	for _, fields := range []int{10, 100} {
		for _, d := range []struct{ name, ours, theirs string }{
			{"SOME/IP → protobuf, against Marshal", "Transcode%dToProto", "Protobuf%dMarshal"},
			{"protobuf → SOME/IP, against Unmarshal", "Transcode%dToSOMEIP", "Protobuf%dUnmarshal"},
		} {
			ours, theirs := fmt.Sprintf(d.ours, fields), fmt.Sprintf(d.theirs, fields)
			if len(times[ours]) == 0 || len(times[theirs]) == 0 {
				return nil, fmt.Errorf("benchmarks of bridge/transcode: no %s or %s in %q", ours, theirs, out)
			}
			row := Transcoding{
				Fields: fields, Direction: d.name, Allocations: allocs[ours],
				Nanoseconds: median(times[ours]), Protobuf: median(times[theirs]),
			}
			row.Ratio = row.Nanoseconds / row.Protobuf
			rows = append(rows, row)
		}
	}
	return rows, nil
}
