package endpoint

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Shape of a batch. A slot takes any datagram whole: only pages that datagrams
// really touched become resident. So that the garbage collector does not take the
// rest for memory in use, which would let garbage grow by as much, and no huge page
// backs them, the slots are mapped outside of its heap.
const (
	batchSize = 16
	slotSize  = 1 << 16
)

// mmsghdr is the kernel's struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [unsafe.Sizeof(uintptr(0)) - 4]byte
}

// overflow is the control message by which the kernel tells how many datagrams it
// has dropped so far for want of room, if any (SO_RXQ_OVFL).
type overflow struct {
	hdr   unix.Cmsghdr
	drops uint32
	_     [4]byte
}

// batch holds the buffers of one receiving socket, for recvmmsg.
type batch struct {
	headers [batchSize]mmsghdr
	vectors [batchSize]unix.Iovec
	names   [batchSize][unix.SizeofSockaddrInet6]byte // room for an IPv4 address too
	drops   [batchSize]overflow
	slots   []byte
	mapped  bool // slots
	zones   map[uint32]string
}

func newBatch() *batch {
	b := &batch{}
	slots, err := unix.Mmap(-1, 0, batchSize*slotSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if b.slots, b.mapped = slots, err == nil; b.mapped {
		_ = unix.Madvise(slots, unix.MADV_NOHUGEPAGE) // where there are huge pages
	} else {
		b.slots = make([]byte, batchSize*slotSize)
	}
	for i := range b.headers {
		b.vectors[i].Base = &b.slots[i*slotSize]
		b.vectors[i].SetLen(slotSize)
		h := &b.headers[i].hdr
		h.Iov = &b.vectors[i]
		h.SetIovlen(1)
		h.Name = &b.names[i][0]
		h.Control = (*byte)(unsafe.Pointer(&b.drops[i])) //nolint:gosec // a control message is bytes to package unix
	}
	return b
}

// free gives the slots back. What message returned is gone then.
func (b *batch) free() {
	if b.mapped {
		_ = unix.Munmap(b.slots)
	}
}

// fill receives what is there, at most a batch, without waiting.
func (b *batch) fill(fd uintptr) (int, error) {
	for i := range b.headers {
		b.headers[i].hdr.Namelen = unix.SizeofSockaddrInet6
		b.headers[i].hdr.SetControllen(int(unsafe.Sizeof(overflow{})))
	}
	headers := unsafe.Pointer(&b.headers) //nolint:gosec // package unix has no recvmmsg
	n, _, errno := syscall.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(headers), batchSize, unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// message gives the sender and the bytes of one received datagram.
func (b *batch) message(i int) (netip.AddrPort, []byte) {
	start := i * slotSize
	end := start + int(b.headers[i].len)
	return b.from(i), b.slots[start:end:end]
}

// from reads a struct sockaddr_in or sockaddr_in6.
func (b *batch) from(i int) netip.AddrPort {
	name := &b.names[i]
	port := binary.BigEndian.Uint16(name[2:])
	if binary.NativeEndian.Uint16(name[:]) == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(name[4:8])), port)
	}
	addr := netip.AddrFrom16([16]byte(name[8:24])).Unmap()
	if scope := binary.NativeEndian.Uint32(name[24:]); scope != 0 {
		addr = addr.WithZone(b.zone(scope)) // case 20: the same address is always written the same way
	}
	return netip.AddrPortFrom(addr, port)
}

func (b *batch) zone(scope uint32) string {
	if z, ok := b.zones[scope]; ok {
		return z
	}
	z := zoneName(int(scope))
	if b.zones == nil {
		b.zones = make(map[uint32]string)
	}
	b.zones[scope] = z
	return z
}

// dropped returns how many datagrams the kernel had dropped when it received one,
// and whether it says so.
func (b *batch) dropped(i int) (uint32, bool) {
	d := &b.drops[i]
	if b.headers[i].hdr.Controllen == 0 || d.hdr.Level != unix.SOL_SOCKET || d.hdr.Type != unix.SO_RXQ_OVFL {
		return 0, false
	}
	return d.drops, true
}

// receive calls h for each datagram, and end after each batch, until the socket is
// closed.
//
// One RawConn.Read lasts as long as the socket: a batch that is not full has
// emptied the queue, and a datagram that comes after it leaves a wake-up behind
// for the poller to find. So a datagram alone costs one system call besides the
// wait, where reads one by one take a second to learn that the queue is empty.
// After several datagrams the second is made: under load there are more by then,
// and to sleep would cost each sender a wake-up. (A thread that blocks in recvmmsg
// saves the wait too, but keeps its processor from the goroutine that it woke: a
// call then took five times as long.)
func (u *UDP) receive(h PacketHandler, end func()) {
	b := newBatch()
	defer b.free()
	_ = u.raw.Read(func(fd uintptr) bool { // ends with net.ErrClosed
		for {
			n, err := b.fill(fd)
			u.deliver(b, n, h)
			if n > 0 && end != nil {
				end()
			}
			switch {
			case err == nil && n > 1:
			case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNREFUSED):
				// the second tells of an earlier datagram that was not delivered
			default:
				return false
			}
		}
	})
}

// deliver hands the datagrams of a batch over, those of strangers left out.
func (u *UDP) deliver(b *batch, n int, h PacketHandler) {
	for i := range n {
		if total, ok := b.dropped(i); ok {
			u.dropped.Store(total)
		}
		from, data := b.message(i)
		if !u.accept.passes(from.Addr()) {
			u.filtered.Add(1)
			continue
		}
		u.received.Add(1)
		h(from, data)
	}
}
