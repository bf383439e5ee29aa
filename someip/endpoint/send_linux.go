package endpoint

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Datagram is one datagram to send.
type Datagram struct {
	To   netip.AddrPort
	Data []byte
}

// sendBatchSize is how many datagrams go to the kernel with one call.
const sendBatchSize = 32

// sendBatch is what sendmmsg needs, kept so that sending allocates nothing. It is
// made when first used.
type sendBatch struct {
	mu      sync.Mutex
	m       *sendMessages
	write   func(fd uintptr) bool // made once
	n, sent int                   // messages in m, and those that the last call took
	errno   syscall.Errno
}

type sendMessages struct {
	headers [sendBatchSize]mmsghdr
	vectors [sendBatchSize]unix.Iovec
	names   [sendBatchSize][unix.SizeofSockaddrInet6]byte
	zones   map[string]uint32
}

// forget drops what was learned of interfaces.
func (s *sendBatch) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m != nil {
		s.m.zones = nil
	}
}

func (s *sendBatch) init() { s.write = s.writeSome }

// SendBatch implements [PacketSocket] with one system call for up to 32 datagrams
// (sendmmsg). It waits while the send buffer is full.
func (u *UDP) SendBatch(batch []Datagram) (sent int, err error) {
	s := &u.sending
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil {
		s.m = new(sendMessages)
	}
	six := !u.own.Is4()
	for len(batch) > 0 {
		part := batch[:min(len(batch), sendBatchSize)]
		batch = batch[len(part):]
		s.m.set(part, six)
		for at := 0; at < len(part); {
			n, e := s.send(u.raw, at, len(part))
			sent += n
			at += n
			if e == nil {
				continue
			}
			if err == nil {
				err = e
			}
			if errors.Is(e, net.ErrClosed) {
				s.m.clear(len(part))
				return sent, err
			}
			at++ // the one that failed is left out
		}
		s.m.clear(len(part))
	}
	return sent, err
}

// send hands over messages from..to and returns how many were taken. An error is
// that of the message after these.
func (s *sendBatch) send(raw syscall.RawConn, from, to int) (int, error) {
	s.n, s.sent, s.errno = to, from, 0
	if err := raw.Write(s.write); err != nil {
		return s.sent - from, net.ErrClosed
	}
	if s.errno != 0 {
		return s.sent - from, s.errno
	}
	return s.sent - from, nil
}

func (s *sendBatch) writeSome(fd uintptr) bool {
	for s.sent < s.n {
		headers := unsafe.Pointer(&s.m.headers[s.sent]) //nolint:gosec // package unix has no sendmmsg
		n, _, errno := syscall.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(headers), uintptr(s.n-s.sent), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			s.sent += int(n)
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			s.errno = errno
			return true
		}
	}
	return true
}

func (m *sendMessages) set(batch []Datagram, six bool) {
	for i := range batch {
		d := &batch[i]
		m.vectors[i].Base = first(d.Data)
		m.vectors[i].SetLen(len(d.Data))
		h := &m.headers[i].hdr
		h.Iov = &m.vectors[i]
		h.SetIovlen(1)
		h.Name = &m.names[i][0]
		h.Namelen = m.putName(&m.names[i], d.To, six)
	}
}

// first is where bytes begin, nil if there are none.
func first(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}

// clear lets go of the caller's bytes.
func (m *sendMessages) clear(n int) {
	for i := range n {
		m.vectors[i].Base = nil
	}
}

// putName writes a struct sockaddr_in or sockaddr_in6 and returns its length. An
// address of the wrong family is refused by the kernel.
func (m *sendMessages) putName(name *[unix.SizeofSockaddrInet6]byte, to netip.AddrPort, six bool) uint32 {
	addr := to.Addr()
	binary.BigEndian.PutUint16(name[2:], to.Port())
	if !six || addr.Is4() {
		binary.NativeEndian.PutUint16(name[:], unix.AF_INET)
		if addr = addr.Unmap(); addr.Is4() {
			*(*[4]byte)(name[4:8]) = addr.As4()
		} else {
			binary.NativeEndian.PutUint16(name[:], unix.AF_INET6)
		}
		clear(name[8:16])
		return unix.SizeofSockaddrInet4
	}
	binary.NativeEndian.PutUint16(name[:], unix.AF_INET6)
	clear(name[4:8])
	*(*[16]byte)(name[8:24]) = addr.As16()
	binary.NativeEndian.PutUint32(name[24:], m.scope(addr.Zone()))
	return unix.SizeofSockaddrInet6
}

// scope is the index of a zone; 0, for none, if it has none any more.
func (m *sendMessages) scope(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if index, ok := m.zones[zone]; ok {
		return index
	}
	index, err := strconv.ParseUint(zone, 10, 32)
	if ifi, ierr := net.InterfaceByName(zone); ierr == nil {
		index, err = uint64(ifi.Index), nil
	}
	if err != nil {
		return 0
	}
	if m.zones == nil {
		m.zones = make(map[string]uint32)
	}
	m.zones[zone] = uint32(index)
	return uint32(index)
}
