// Package judge records the packets of an interop run and has a foreign
// dissector, tshark, judge them: how many SOME/IP messages they hold, what is
// malformed, what it warns of.
package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// ErrNoTshark says that tshark is not installed.
var ErrNoTshark = errors.New("tshark is not installed (make deps installs it)")

// Ports names the ports that carry SOME/IP and that tshark cannot know. Ports of
// services it learns from the SD messages of the capture.
type Ports struct {
	UDP []uint16 // at least those of SD: without them SD is taken for DNS
	TCP []uint16
}

// Check has tshark read a pcap file. The error is one of running tshark; what is
// wrong with the packets is in the report.
func Check(ctx context.Context, file string, ports Ports) (*Report, error) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		return nil, ErrNoTshark
	}
	args := []string{
		"-n", "-r", file,
		"-o", "someip.ports.udp:" + portList(ports.UDP),
		"-o", "someip.ports.tcp:" + portList(ports.TCP),
		// ICMP quotes packets, cut, that are in the capture already.
		"-Y", "(someip || _ws.malformed) && !icmp && !icmpv6",
		"-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=" + several,
	}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	cmd := exec.CommandContext(ctx, tshark, args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("tshark: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	report, err := parse(out.String())
	if err != nil {
		return nil, err
	}
	report.Stderr = complaints(stderr.String())
	return report, nil
}

func portList(ports []uint16) string {
	s := make([]string, len(ports))
	for i, p := range ports {
		s[i] = strconv.Itoa(int(p))
	}
	return strings.Join(s, ",")
}

// complaints is what tshark said beside its result, without its warning of root,
// which is about us and not about the packets.
func complaints(stderr string) string {
	var kept []string
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Running as user") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
