package judge_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"carisma.dev/gateway/interop/judge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// offer is an SD message of vsomeip 3.4.10: service 0x6001, instance 1, major 1,
// TTL 3 s, UDP and TCP endpoint 10.77.1.1:30600.
const offer = "ffff8100" + "0000003c" + "00000001" + "01010200" +
	"c0000000" + "00000010" + "01000020" + "60010001" + "01000003" + "00000000" + "00000018" +
	"00090400" + "0a4d0101" + "00067788" + "00090400" + "0a4d0101" + "00117788"

// request is one of service 0x6001, method 1, of client 0x0102.
const request = "60010001" + "00000010" + "01020001" + "01010000" + "0102030405060708"

var (
	group   = netip.MustParseAddrPort("224.244.224.9:30499")
	service = netip.MustParseAddrPort("10.77.1.1:30600")
	client  = netip.MustParseAddrPort("10.77.1.2:48765")
	sd      = netip.MustParseAddrPort("10.77.1.1:30499")
)

func TestCheck(t *testing.T) {
	cases := []struct {
		name     string
		packets  [][]byte
		messages int
		wrong    string // part of the error
	}{
		{
			name:     "offer, then two requests in one datagram",
			packets:  [][]byte{udp(t, sd, group, offer), udp(t, client, service, request+request)},
			messages: 3,
		},
		{
			name:     "SD message cut within its entries",
			packets:  [][]byte{udp(t, sd, group, "ffff8100"+"00000018"+"00000001"+"01010200"+"c0000000"+"00000010"+"01000020"+"60010001")},
			messages: 1,
			wrong:    "malformed",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			report := check(t, write(t, c.packets...), judge.Ports{UDP: []uint16{30499}})
			require.Len(t, report.Messages, c.messages)
			if c.wrong == "" {
				require.NoError(t, report.Err())
			} else {
				require.ErrorContains(t, report.Err(), c.wrong)
			}
		})
	}
}

// The port of a service comes from its offer.
func TestMessages(t *testing.T) {
	report := check(t, write(t, udp(t, sd, group, offer), udp(t, client, service, request)), judge.Ports{UDP: []uint16{30499}})
	require.NoError(t, report.Err())
	require.Equal(t, 1, report.Count(judge.Message.SD))
	require.Equal(t, judge.Message{
		Frame: 2, Source: client, Dest: service,
		Service: 0x6001, Method: 1, Client: 0x0102, Session: 1,
	}, report.Messages[1])
}

// A datagram that crosses a device while it is recorded is in the file, once.
func TestCapture(t *testing.T) {
	receiver, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer receiver.Close()
	file := filepath.Join(t.TempDir(), "lo.pcap")
	capture, err := judge.Start(file, "lo", judge.InNamespaceOf(os.Getpid()))
	if errors.Is(err, os.ErrPermission) {
		t.Skip("packet sockets need root:", err)
	}
	require.NoError(t, err)
	sender, err := net.Dial("udp4", receiver.LocalAddr().String())
	require.NoError(t, err)
	defer sender.Close()
	message, err := hex.DecodeString(request)
	require.NoError(t, err)
	const sent = 20
	for range sent {
		_, err = sender.Write(message)
		require.NoError(t, err)
	}
	frames, err := capture.Stop()
	require.NoError(t, err)
	require.GreaterOrEqual(t, frames, sent)

	to := receiver.LocalAddr().(*net.UDPAddr).AddrPort()
	report := check(t, file, judge.Ports{UDP: []uint16{to.Port()}})
	require.Equal(t, sent, report.Count(func(m judge.Message) bool { return m.Dest == to }))
}

func check(t *testing.T, file string, ports judge.Ports) *judge.Report {
	t.Helper()
	report, err := judge.Check(t.Context(), file, ports)
	if errors.Is(err, judge.ErrNoTshark) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return report
}

func write(t *testing.T, packets ...[]byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.pcap")
	var b strings.Builder
	w, err := judge.NewPcapWriter(&b)
	require.NoError(t, err)
	for i, p := range packets {
		require.NoError(t, w.Write(time.Unix(1700000000, int64(i)*1000), p))
	}
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}

// udp makes an Ethernet frame of a payload in hexadecimal digits.
func udp(t *testing.T, source, dest netip.AddrPort, payload string) []byte {
	t.Helper()
	body, err := hex.DecodeString(payload)
	require.NoError(t, err)
	b := append(make([]byte, 12), 0x08, 0x00)
	ip := len(b)
	b = append(b, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(28+len(body)))
	b = append(b, 0, 0, 0, 0, 64, 17, 0, 0)
	b = append(append(b, source.Addr().AsSlice()...), dest.Addr().AsSlice()...)
	sum := uint32(0)
	for i := ip; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[ip+10:], ^uint16(sum+sum>>16))
	b = binary.BigEndian.AppendUint16(b, source.Port())
	b = binary.BigEndian.AppendUint16(b, dest.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(body)))
	b = append(b, 0, 0) // no checksum
	return append(b, body...)
}
