package endpoint

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// boundSocket is a line of /proc/net/udp or /proc/net/tcp.
type boundSocket struct {
	local     netip.AddrPort
	inode     string
	listening bool // of TCP; a UDP socket is never
}

const tcpListen = "0A"

// parseSocket reads a line of /proc/net/{udp,tcp}{,6}: number, local address,
// remote address, state, queues, timer, retransmits, uid, timeout, inode.
func parseSocket(line string) (s boundSocket, ok bool) {
	f := strings.Fields(line)
	if len(f) < 10 {
		return s, false
	}
	host, port, _ := strings.Cut(f[1], ":")
	addr, ok := parseHexAddr(host)
	number, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return s, false
	}
	return boundSocket{netip.AddrPortFrom(addr, uint16(number)), f[9], f[3] == tcpListen}, true
}

// parseHexAddr reads an address as the kernel prints it: 32-bit words in the
// byte order of the machine.
func parseHexAddr(s string) (netip.Addr, bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 4 && len(b) != 16 {
		return netip.Addr{}, false
	}
	for i := 0; i < len(b); i += 4 {
		word := binary.BigEndian.Uint32(b[i:])
		if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
			word = bits.ReverseBytes32(word)
		}
		binary.BigEndian.PutUint32(b[i:], word)
	}
	addr, ok := netip.AddrFromSlice(b)
	return addr.Unmap(), ok
}

// sockets calls f for the bound UDP or listening TCP sockets of the host until it
// returns false.
func sockets(network string, f func(boundSocket) bool) {
	for _, name := range []string{network, network + "6"} {
		file, err := os.Open("/proc/self/net/" + name)
		if err != nil {
			continue // no such family
		}
		lines := bufio.NewScanner(file)
		for more := true; more && lines.Scan(); {
			if s, ok := parseSocket(lines.Text()); ok && (s.listening || network == "udp") {
				more = f(s)
			}
		}
		file.Close()
	}
}

// otherSocket returns the inode of a UDP socket other than own that is bound to
// exactly this address, or "".
func otherSocket(local netip.AddrPort, own string) (inode string) {
	local = netip.AddrPortFrom(local.Addr().WithZone(""), local.Port())
	sockets("udp", func(s boundSocket) bool {
		if s.local == local && s.inode != own {
			inode = s.inode
		}
		return inode == ""
	})
	return inode
}

// holder names the process that has an address, or else one that has the port on
// all addresses; empty if that cannot be seen.
func holder(network string, local netip.AddrPort) (name string, all bool) {
	local = netip.AddrPortFrom(local.Addr().WithZone(""), local.Port())
	var exact, wildcard string
	sockets(network, func(s boundSocket) bool {
		switch {
		case s.local == local:
			exact = s.inode
		case s.local.Port() == local.Port() && s.local.Addr().IsUnspecified():
			wildcard = s.inode
		}
		return exact == ""
	})
	switch {
	case exact != "":
		return process(exact), false
	case wildcard != "":
		return process(wildcard), true
	}
	return "", false
}

// process finds a process that has a socket open. Those of other users are not
// shown to everybody.
func process(inode string) string {
	want := "socket:[" + inode + "]"
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range procs {
		fds, err := os.ReadDir(dir + "/fd")
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if target, _ := os.Readlink(filepath.Join(dir, "fd", fd.Name())); target != want {
				continue
			}
			pid := filepath.Base(dir)
			name, err := os.ReadFile(dir + "/comm")
			if err != nil {
				return "process " + pid
			}
			return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), pid)
		}
	}
	return ""
}
