// Package cabin_test holds the foreign programs of the sample vehicle to what its
// own programs do.
package cabin_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/interop/peers"
	"carisma.dev/gateway/vehicles/hosts"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	request         = 0x00
	requestNoReturn = 0x01
	ecuAddress      = "10.77.1.2"
)

// step is one request to an instance of Climate.
type step struct {
	what    string
	tcp     bool
	method  uint16
	version byte
	kind    byte
	payload string // hexadecimal
	silent  bool   // must not be answered
}

var steps = []step{
	{what: "describe", method: 0x0001},
	{what: "mode heat", method: 0x0003, payload: "02" + "0008" + "efbbbf636f6c6400"},
	{what: "boost 60", method: 0x0004, payload: "003c"},
	{what: "boost 500", method: 0x0004, payload: "01f4"},
	{what: "boost 700, blocked", method: 0x0004, payload: "02bc"},
	{what: "boost 0", method: 0x0004, payload: "0000"},
	{what: "boost cut short", method: 0x0004, payload: "00"},
	{what: "boost without an answer", method: 0x0004, kind: requestNoReturn, payload: "003c", silent: true},
	{what: "mode off", method: 0x0003, payload: "00" + "0004" + "efbbbf00"},
	{what: "boost in mode off", method: 0x0004, payload: "0000"},
	{what: "target too high", method: 0x0011, payload: "42200000"},
	{what: "target", method: 0x0010},
	{what: "purge as a request", method: 0x0005, payload: "07"},
	{what: "purge", method: 0x0005, kind: requestNoReturn, payload: "07", silent: true},
	{what: "unknown method", method: 0x0099},
	{what: "another major", method: 0x0001, version: 9},
	{what: "another major and an unknown method", method: 0x0099, version: 9},
	{what: "vents", tcp: true, method: 0x0002, payload: "0012" + "000401320001" + "000402650001" + "000403640001"},
	{what: "vents cut short", tcp: true, method: 0x0002, payload: "0012" + "0004013200"},
}

// The ECU on our stack and the one on vsomeip answer the same requests with the
// same bytes, so that what is shown with one holds with the other.
func TestECUsAgree(t *testing.T) {
	programs := peers.Need(t, peers.Vsomeip)[0]
	if !hosts.Permitted() {
		t.Skip("network namespaces are not permitted to this user")
	}
	own, err := filepath.Abs("../../bin/cabin-climate")
	require.NoError(t, err)
	if _, err := os.Stat(own); err != nil {
		t.Skip("make build builds it:", err)
	}
	ours, theirs := answers(t, own), answers(t, filepath.Join(programs, "ecu"))
	require.Equal(t, ours, theirs)
}

// answers runs an ECU in a namespace of its own and plays the steps to both
// instances.
func answers(t *testing.T, program string) []string {
	t.Helper()
	w, err := hosts.Namespaces(
		[]hosts.Network{{Name: "net", Subnet: netip.MustParsePrefix("10.77.1.0/24"), Multicast: true}},
		[]hosts.Spec{
			{Name: "ecu", Addresses: map[string]netip.Addr{"net": netip.MustParseAddr(ecuAddress)}},
			{Name: "client", Addresses: map[string]netip.Addr{"net": netip.MustParseAddr("10.77.1.9")}},
		})
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ecu := exec.CommandContext(ctx, program)
	ecu.Env = append(os.Environ(), "CARISMA_ADDRESS="+ecuAddress, "CARISMA_PREFIX_LEN=24", "CARISMA_NETWORK=net",
		"CARISMA_INTERFACE="+hosts.DeviceName("net"), "CARISMA_SD_GROUP=224.244.77.1", "CARISMA_SD_PORT=30490")
	require.NoError(t, w.Host("ecu").Start(ecu))
	defer func() {
		require.NoError(t, ecu.Process.Signal(syscall.SIGTERM))
		require.NoError(t, ecu.Wait())
	}()
	var all []string
	for _, instance := range []string{":30509", ":30510"} {
		udp, tcp := dial(ctx, t, w.Host("client"), "udp", instance), dial(ctx, t, w.Host("client"), "tcp", instance)
		for i, s := range steps {
			conn := udp
			if s.tcp {
				conn = tcp
			}
			all = append(all, fmt.Sprintf("%s %s: %s", instance, s.what, play(t, conn, s, uint16(i+1))))
		}
		require.NoError(t, udp.Close())
		require.NoError(t, tcp.Close())
	}
	return all
}

// patience bounds what an ECU may take to start.
const patience = 20 * time.Second

// dial connects to an instance as soon as it is there: over UDP that is once it
// answers, for a datagram to a port that is not open yet is lost.
func dial(ctx context.Context, t *testing.T, from *hosts.Host, network, port string) net.Conn {
	t.Helper()
	describe := message(t, steps[0], 0xffff)
	var conn net.Conn
	require.Eventually(t, func() bool {
		c, err := from.Dial(ctx, network, ecuAddress+port)
		if err != nil {
			return false
		}
		if network == "udp" && !answered(c, describe) {
			_ = c.Close() // tried again with another one
			return false
		}
		conn = c
		return true
	}, patience, time.Millisecond, "nothing at %s%s/%s", ecuAddress, port, network)
	return conn
}

// answered reports whether a request over UDP is answered.
func answered(conn net.Conn, request []byte) bool {
	_, err := conn.Write(request)
	if err == nil {
		err = conn.SetReadDeadline(time.Now().Add(time.Second))
	}
	if err == nil {
		_, err = conn.Read(make([]byte, 1500))
	}
	return err == nil
}

// play sends one request and returns the answer in hexadecimal. That a request
// is not answered shows by the next answer being that to a later request: the
// ECU answers in order.
func play(t *testing.T, conn net.Conn, s step, session uint16) string {
	t.Helper()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err := conn.Write(message(t, s, session))
	require.NoError(t, err)
	if s.silent {
		return "silence"
	}
	answer := receive(t, conn, s.tcp)
	require.Equal(t, session, binary.BigEndian.Uint16(answer[10:]), "%s: answer to another request: %x", s.what, answer)
	return hex.EncodeToString(answer)
}

func receive(t *testing.T, conn net.Conn, stream bool) []byte {
	t.Helper()
	answer := make([]byte, 1500)
	if !stream {
		n, err := conn.Read(answer)
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, 16)
		return answer[:n]
	}
	_, err := io.ReadFull(conn, answer[:8])
	require.NoError(t, err)
	size := 8 + int(binary.BigEndian.Uint32(answer[4:]))
	require.LessOrEqual(t, size, len(answer))
	_, err = io.ReadFull(conn, answer[8:size])
	require.NoError(t, err)
	return answer[:size]
}

func message(t *testing.T, s step, session uint16) []byte {
	t.Helper()
	payload, err := hex.DecodeString(s.payload)
	require.NoError(t, err)
	version := s.version
	if version == 0 {
		version = 1
	}
	b := binary.BigEndian.AppendUint16(nil, 0x4001)
	b = binary.BigEndian.AppendUint16(b, s.method)
	b = binary.BigEndian.AppendUint32(b, uint32(8+len(payload)))
	b = binary.BigEndian.AppendUint16(b, 0x0177)
	b = binary.BigEndian.AppendUint16(b, session)
	b = append(b, 1, version, s.kind, 0)
	return append(b, payload...)
}
