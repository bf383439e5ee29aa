package endpoint_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const insideNamespace = "ENDPOINT_TEST_IN_NAMESPACE"

// inNamespace reports whether the test runs in a network namespace of its own, where
// only a loopback interface is, up. If not it runs the test again in one, as its own
// process, and judges by that.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideNamespace) != "" {
		ip(t, "link set lo up")
		return true
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("no ip of iproute2: make deps installs it")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), insideNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) { // the last under qemu-user
		t.Skipf("no network namespace: %v", err)
	}
	if strings.Contains(out.String(), "--- SKIP") {
		t.Skip(out.String())
	}
	require.NoError(t, err, "%s", out)
	return false
}

// ip runs iproute2.
func ip(t *testing.T, args string) {
	t.Helper()
	out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput()
	require.NoError(t, err, "ip %s: %s", args, out)
}

// wire makes two interfaces that are joined, up and with an address each.
func wire(t *testing.T, a, addrA, b, addrB string) {
	t.Helper()
	if out, err := exec.Command("ip", "link", "add", a, "type", "veth", "peer", "name", b).CombinedOutput(); err != nil {
		t.Skipf("no veth: %s", out)
	}
	// What one end sends the other takes, though the sender's address is of this host.
	require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/conf/all/accept_local", []byte("1"), 0o600))
	for _, end := range [][2]string{{a, addrA}, {b, addrB}} {
		ip(t, "address add "+end[1]+" dev "+end[0]+nodad(end[1]))
		ip(t, "link set "+end[0]+" up")
	}
}

// nodad leaves out the second that IPv6 waits to see that an address is free.
func nodad(address string) string {
	if strings.Contains(address, ":") {
		return " nodad"
	}
	return ""
}
