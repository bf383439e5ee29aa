package runtime_test

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/runtime"
	"carisma.dev/gateway/someip/sd"
	"carisma.dev/gateway/someip/someiptest"
)

func request(method uint16, session uint16, payload string) someip.Message {
	return someip.NewRequest(key.Service, method, key.Major, 0x1343, session, []byte(payload))
}

// served starts a host with the service, and a scripted client.
func served(t *testing.T, alter ...func(*runtime.NetworkConfig)) (n *runtime.Network, to netip.AddrPort, p peer, h *server) {
	t.Helper()
	d := someiptest.NewDomain(t)
	n = d.Start(1, alter...)
	h = newServer()
	o := offer(t, n, h)
	return n, o.Endpoints().UDP, newPeer(t, d.AddrPort(2, 0)), h
}

func TestCase1JunkBehindAMessage(t *testing.T) {
	n, to, p, _ := served(t)
	junk := bytes.Repeat([]byte{0xA5}, 32)
	p.Send(to, append(request(echo, 1, "12345678").Append(nil), junk...))
	m := p.next()
	require.Equal(t, "12345678", string(m.Payload))
	require.Equal(t, someip.Response, m.Type)
	// The large datagram is taken too; its tail looks like nothing.
	p.Send(to, append(request(echo, 2, "12345678").Append(nil), bytes.Repeat(junk, 144)...))
	require.EqualValues(t, 2, p.next().Session)
	eventually(t, func() bool { return n.Stats().Malformed == 2 }, "tails counted")
	p.Nothing()
}

func TestCase2LengthBelowEight(t *testing.T) {
	n, to, p, _ := served(t)
	for length := range byte(8) {
		b := request(echo, 1, "abc").Append(nil)
		b[7] = length
		p.Send(to, b)
	}
	b := request(echo, 1, "abc").Append(nil)
	copy(b[4:], "\xff\xff\xff\xfa") // would wrap
	p.Send(to, b)
	p.Send(to, b[:9])
	p.Send(to, request(echo, 2, "good").Append(nil))
	require.EqualValues(t, 2, p.next().Session)
	require.EqualValues(t, 10, n.Stats().Malformed)
	p.Nothing()
}

func TestCase5RequestWithReturnCode(t *testing.T) {
	faulty := func(code someip.ReturnCode, method uint16) []byte {
		m := request(method, 1, "x")
		m.Code = code
		return m.Append(nil)
	}
	t.Run("served", func(t *testing.T) {
		n, to, p, _ := served(t)
		p.Send(to, faulty(0x01, echo))
		require.Equal(t, someip.OK, p.next().Code)
		p.Send(to, faulty(0x01, fail)) // never an error back (RC-1)
		p.Send(to, faulty(0x01, 0x0777))
		p.Send(to, faulty(0xC0, echo))
		p.Send(to, request(echo, 2, "").Append(nil))
		require.EqualValues(t, 2, p.next().Session)
		require.EqualValues(t, 1, n.Stats().WrongReturnCode)
		p.Nothing()
	})
	t.Run("strict", func(t *testing.T) {
		n, to, p, _ := served(t, func(c *runtime.NetworkConfig) { c.Strict = true })
		p.Send(to, faulty(0x01, echo))
		p.Send(to, request(echo, 2, "").Append(nil))
		require.EqualValues(t, 2, p.next().Session)
		require.EqualValues(t, 1, n.Stats().WrongReturnCode)
	})
}

// TestCase7OrderOfChecks: which error a request with several faults gets.
func TestCase7OrderOfChecks(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(*someip.Message)
		code  someip.ReturnCode
		count func(runtime.Stats) uint64
	}{
		"unknown service, major and method": {
			func(m *someip.Message) { m.Service, m.InterfaceVersion, m.Method = 0x4711, 9, 0x0777 },
			someip.UnknownService, func(s runtime.Stats) uint64 { return s.UnknownService },
		},
		"unknown major and method": {
			func(m *someip.Message) { m.InterfaceVersion, m.Method = 9, 0x0777 },
			someip.WrongInterfaceVersion, func(s runtime.Stats) uint64 { return s.WrongInterface },
		},
		"unknown method": {
			func(m *someip.Message) { m.Method = 0x0777 },
			someip.UnknownMethod, func(s runtime.Stats) uint64 { return s.UnknownMethod },
		},
		"event as method": {
			func(m *someip.Message) { m.Method = event },
			someip.UnknownMethod, func(s runtime.Stats) uint64 { return s.UnknownMethod },
		},
		"request to fire and forget": {
			func(m *someip.Message) { m.Method = tell },
			someip.WrongMessageType, func(s runtime.Stats) uint64 { return s.WrongType },
		},
		"protocol version": {
			func(m *someip.Message) { m.ProtocolVersion, m.Service = 2, 0x4711 },
			someip.WrongProtocolVersion, func(s runtime.Stats) uint64 { return s.WrongProtocol },
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, to, p, _ := served(t)
			m := request(echo, 7, "abc")
			c.alter(&m)
			p.Send(to, m.Append(nil))
			got, from := p.Receive()
			require.Equal(t, to, from, "from the offered port (UDP-4)")
			want := m.Header
			want.ProtocolVersion, want.Type, want.Code, want.Length = 1, someip.Error, c.code, 8 // RC-4
			require.Equal(t, []someip.Message{{Header: want, Payload: []byte{}}}, got)
			require.EqualValues(t, 1, c.count(n.Stats()))

			// The same never gets an answer where it is no request (RC-6).
			for _, typ := range []someip.MessageType{
				someip.RequestNoReturn, someip.Notification, someip.Response, someip.Error,
				0x40, 0x41, 0xC0, 0x20, 0x21, 0xA0, // case 10, TP-10
			} {
				m.Type = typ
				p.Send(to, m.Append(nil))
			}
			p.Send(to, request(echo, 8, "").Append(nil))
			require.EqualValues(t, 8, p.next().Session)
			p.Nothing()
		})
	}
}

func TestWrongProtocolVersionCanBeSilent(t *testing.T) {
	n, to, p, _ := served(t, func(c *runtime.NetworkConfig) { c.SilentOnWrongProtocol = true })
	m := request(echo, 1, "")
	m.ProtocolVersion = 0
	p.Send(to, m.Append(nil))
	p.Send(to, request(echo, 2, "").Append(nil))
	require.EqualValues(t, 2, p.next().Session)
	require.EqualValues(t, 1, n.Stats().WrongProtocol)
}

// A request to answer sent as fire and forget is dropped: nobody would answer.
func TestFireAndForgetToAMethod(t *testing.T) {
	n, to, p, h := served(t)
	m := request(silent, 1, "")
	m.Type = someip.RequestNoReturn
	p.Send(to, m.Append(nil))
	p.Send(to, request(echo, 2, "").Append(nil))
	p.next()
	require.Empty(t, h.held)
	require.EqualValues(t, 1, n.Stats().WrongType)
}

func TestCase8InterfaceVersionIsTheMajor(t *testing.T) {
	d := someiptest.NewDomain(t)
	o := offer(t, d.Start(1), newServer())
	p := newPeer(t, d.AddrPort(2, 0))
	for i, method := range []uint16{echo, fail, failSoft} {
		p.Send(o.Endpoints().UDP, request(method, uint16(i), "").Append(nil))
		require.Equal(t, key.Major, p.next().InterfaceVersion)
	}
	discovery := newPeer(t, d.SD(2))
	discovery.subscribe(d, o, p.Addr())
	ack, _ := discovery.ReceiveSD(sd.SubscribeAck)
	require.NotZero(t, ack.TTL)
	eventually(t, func() bool { return o.Subscribers(event) == 1 }, "subscribed")
	require.NoError(t, o.Notify(event, nil))
	m := p.next()
	require.Equal(t, someip.Notification, m.Type)
	require.Equal(t, key.Major, m.InterfaceVersion)
	require.Zero(t, m.Client, "HDR-5")
	require.EqualValues(t, 1, m.Session)
}

func TestCase13SeveralMessagesInADatagram(t *testing.T) {
	_, to, p, _ := served(t)
	var b []byte
	for i, payload := range []string{"abc", "d", "efghi"} { // the second is not aligned
		b = request(echo, uint16(i), payload).Append(b)
		if i == 0 {
			m := request(0x0777, 99, "") // bad only in meaning: the rest goes on (UDP-7)
			b = m.Append(b)
		}
	}
	p.Send(to, b)
	for _, want := range []string{"abc", "", "d", "efghi"} {
		require.Equal(t, want, string(p.next().Payload))
	}
}

func TestCase17StopOfferKeepsTheConnection(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(1)
	o := offer(t, n, newServer())
	cfg := service(newServer())
	cfg.Service++
	cfg.TCPPort = o.Endpoints().TCP.Port()
	other, err := n.Offer(cfg)
	require.NoError(t, err)
	c, err := net.Dial("tcp", o.Endpoints().TCP.String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	ask := func(m someip.Message) someip.Message {
		_, err := c.Write(m.Append(nil))
		require.NoError(t, err)
		b := make([]byte, 1024)
		size, err := c.Read(b)
		require.NoError(t, err)
		reply, _, err := someip.ParseMessage(b[:size])
		require.NoError(t, err)
		return reply
	}
	second := request(echo, 1, "x")
	second.Service++
	require.Equal(t, someip.OK, ask(second).Code)
	other.Stop()
	require.Equal(t, someip.UnknownService, ask(second).Code)
	require.Equal(t, "still", string(ask(request(echo, 2, "still")).Payload))
	o.Stop()
	require.Equal(t, someip.UnknownService, ask(request(echo, 3, "")).Code, "the client closes (TCP-2)")
}

func TestCase23SameClientIDTwice(t *testing.T) {
	d := someiptest.NewDomain(t)
	h := newServer()
	o := offer(t, d.Start(1), h)
	a, b := newPeer(t, d.AddrPort(2, 0)), newPeer(t, d.AddrPort(3, 0))
	for _, p := range []peer{a, b} {
		p.Send(o.Endpoints().UDP, request(silent, 5, "").Append(nil))
	}
	first, second := receive(t, h.held), receive(t, h.held)
	require.NoError(t, second.Respond([]byte(second.Peer.String())))
	require.NoError(t, first.Respond([]byte(first.Peer.String())))
	for _, p := range []peer{a, b} {
		require.Equal(t, p.Addr().String(), string(p.next().Payload))
		p.Nothing()
	}
}

// A server that is ours answers once; one that answers twice is counted.
func TestCase25SecondAnswer(t *testing.T) {
	_, to, p, _ := served(t)
	p.Send(to, request(twice, 1, "").Append(nil))
	p.Send(to, request(echo, 2, "").Append(nil))
	require.EqualValues(t, 1, p.next().Session)
	require.EqualValues(t, 2, p.next().Session)

	d := someiptest.NewDomain(t)
	two := d.Start(2)
	c := client(t, two)
	s := newPeer(t, d.AddrPort(1, 0))
	newPeer(t, d.SD(1)).offer(d, s.Addr(), 1)
	available(t, c, true)
	results := make(chan runtime.Response)
	go func() { results <- call(t, c, echo, false, "") }()
	req, from := s.ReceiveOne()
	for range 2 {
		s.Send(from, req.Response([]byte("one")).Append(nil))
	}
	require.Equal(t, "one", string(receive(t, results).Payload))
	eventually(t, func() bool { return two.Stats().UnmatchedReplies == 1 }, "second answer counted")

	// Answers to nothing, from elsewhere or with another method are no answers (SES-3).
	other := newPeer(t, d.AddrPort(3, 0))
	go func() { results <- call(t, c, echo, false, "") }()
	req, from = s.ReceiveOne()
	other.Send(from, req.Response([]byte("foreign")).Append(nil))
	wrong := req.Response(nil)
	wrong.Method++
	s.Send(from, wrong.Append(nil))
	wrong = req.Response(nil)
	wrong.Session++
	s.Send(from, wrong.Append(nil))
	wrong = req.Response(nil)
	wrong.Client++
	s.Send(from, wrong.Append(nil))
	eventually(t, func() bool { return two.Stats().UnmatchedReplies == 5 }, "others counted")
	bad := req.Response([]byte("E_OK in an ERROR"))
	bad.Type = someip.Error
	s.Send(from, bad.Append(nil))
	r := receive(t, results)
	require.Equal(t, someip.NotOK, r.Code, "RC-2")
	require.True(t, r.Exception)
}

// Events are taken from the offered endpoint with the right major only (10.3).
func TestEventsFromElsewhere(t *testing.T) {
	d := someiptest.NewDomain(t)
	n := d.Start(2)
	s := newPeer(t, d.SD(1))
	server := newPeer(t, d.AddrPort(1, 0))
	s.offer(d, server.Addr(), 1)
	sub := subscribe(t, client(t, n), runtime.SubscribeConfig{Eventgroup: group, Events: []uint16{event}})
	entry, opts := s.ReceiveSD(sd.Subscribe)
	to := opts[0].Endpoint
	s.ack(d, entry, 2)
	sub.until(t, runtime.SubscriptionActive)

	notification := func(alter func(*someip.Message)) []byte {
		m := someip.NewNotification(key.Service, event, key.Major, 1, []byte("x"))
		alter(&m)
		return m.Append(nil)
	}
	newPeer(t, d.AddrPort(1, 0)).Send(to, notification(func(*someip.Message) {}))
	server.Send(to, notification(func(m *someip.Message) { m.InterfaceVersion++ }))
	server.Send(to, notification(func(m *someip.Message) { m.Service++ }))
	server.Send(to, notification(func(m *someip.Message) { m.Method++ }))
	server.Send(to, notification(func(m *someip.Message) { m.Code = 0x7F }))
	server.Send(to, notification(func(m *someip.Message) { m.Type = someip.Request }))
	server.Send(to, notification(func(m *someip.Message) { m.Client, m.Payload = 0x0101, []byte("good") })) // HDR-5
	require.Equal(t, note{event, "good", true}, receive(t, sub.notes))
	require.Empty(t, sub.notes)
	require.EqualValues(t, 4, n.Stats().UnexpectedEvents)
	require.EqualValues(t, 1, n.Stats().WrongReturnCode)
	require.EqualValues(t, 1, n.Stats().WrongType)
}
