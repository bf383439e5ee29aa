package hosts

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// multicastRange is the route of SOME/IP-SD: stacks that choose the device by
// the routing table need it.
var multicastRange = net.IPNet{IP: net.IPv4(224, 0, 0, 0).To4(), Mask: net.CIDRMask(4, 32)}

// Namespaces makes a network namespace for each host and, for each network, a
// bridge in one more namespace, with a veth pair to each host on it. The device
// has the name of its network (see DeviceName). It needs CAP_NET_ADMIN and
// CAP_SYS_ADMIN over the network namespace of the caller, as root has or an
// unprivileged user in a user namespace of its own.
func Namespaces(networks []Network, specs []Spec) (_ *World, err error) {
	w := &World{hosts: map[string]*Host{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	middle, err := w.newNamespace()
	if err != nil {
		return nil, err
	}
	handle, err := netlink.NewHandleAt(middle, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	defer handle.Close()
	bridges := map[string]netlink.Link{}
	for i, n := range networks {
		bridge, err := addBridge(handle, fmt.Sprintf("br%d", i))
		if err != nil {
			return nil, fmt.Errorf("network %s: %w", n.Name, err)
		}
		bridges[n.Name] = bridge
	}
	port := 0
	for _, s := range specs {
		ns, err := w.newNamespace()
		if err != nil {
			return nil, err
		}
		multicastRouted := false
		for _, n := range networks {
			addr, on := s.Addresses[n.Name]
			if !on {
				continue
			}
			port++
			a := attachment{
				network: n, addr: addr, host: ns, bridge: bridges[n.Name], port: fmt.Sprintf("port%d", port),
				multicastRoute: n.Multicast && !multicastRouted,
			}
			multicastRouted = multicastRouted || n.Multicast
			if err := a.attach(handle); err != nil {
				return nil, fmt.Errorf("host %s on network %s: %w", s.Name, n.Name, err)
			}
		}
		if err := loopbackUp(ns); err != nil {
			return nil, fmt.Errorf("host %s: %w", s.Name, err)
		}
		w.hosts[s.Name] = newHost(s.Name, func() error { return netns.Set(ns) })
	}
	return w, nil
}

// DeviceName is the name of a network's device on its hosts: the name of the
// network, cut to what the kernel takes.
func DeviceName(network string) string {
	return network[:min(len(network), unix.IFNAMSIZ-1)]
}

// newNamespace makes a network namespace without entering it.
func (w *World) newNamespace() (netns.NsHandle, error) {
	type result struct {
		ns  netns.NsHandle
		err error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine, as it is in the new namespace
		ns, err := netns.New()
		made <- result{ns, err}
	}()
	r := <-made
	if r.err != nil {
		return 0, fmt.Errorf("make network namespace: %w", r.err)
	}
	w.close = append(w.close, r.ns.Close)
	return r.ns, nil
}

func addBridge(h *netlink.Handle, name string) (netlink.Link, error) {
	snooping := false // without a querier on the network it would drop groups
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}, MulticastSnooping: &snooping}
	if err := h.LinkAdd(bridge); err != nil {
		return nil, fmt.Errorf("add bridge: %w", err)
	}
	if err := h.LinkSetUp(bridge); err != nil {
		return nil, fmt.Errorf("bridge up: %w", err)
	}
	return bridge, nil
}

func loopbackUp(ns netns.NsHandle) error {
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	return h.LinkSetUp(lo)
}

// attachment is the plug of one host on one network.
type attachment struct {
	network        Network
	addr           netip.Addr
	host           netns.NsHandle
	bridge         netlink.Link
	port           string // name of the bridge's end
	multicastRoute bool
}

func (a *attachment) attach(middle *netlink.Handle) error {
	device := DeviceName(a.network.Name)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = a.port
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: device, PeerNamespace: netlink.NsFd(a.host)}
	if err := middle.LinkAdd(veth); err != nil {
		return fmt.Errorf("add veth: %w", err)
	}
	if err := middle.LinkSetMaster(veth, a.bridge); err != nil {
		return fmt.Errorf("plug into bridge: %w", err)
	}
	if err := middle.LinkSetUp(veth); err != nil {
		return fmt.Errorf("port up: %w", err)
	}
	host, err := netlink.NewHandleAt(a.host, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer host.Close()
	link, err := host.LinkByName(device)
	if err != nil {
		return err
	}
	address := &netlink.Addr{IPNet: &net.IPNet{
		IP:   a.addr.AsSlice(),
		Mask: net.CIDRMask(a.network.Subnet.Bits(), a.addr.BitLen()),
	}}
	if a.addr.Is6() {
		address.Flags = unix.IFA_F_NODAD // usable at once
	}
	if err := host.AddrAdd(link, address); err != nil {
		return fmt.Errorf("add address %s: %w", a.addr, err)
	}
	if err := host.LinkSetUp(link); err != nil {
		return fmt.Errorf("device up: %w", err)
	}
	if a.multicastRoute {
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: &multicastRange, Scope: netlink.SCOPE_LINK}
		if err := host.RouteAdd(route); err != nil {
			return fmt.Errorf("add multicast route: %w", err)
		}
	}
	return nil
}

// SetLink takes the cable of a host's device out, or puts it back in.
func (h *Host) SetLink(network string, up bool) error {
	return h.Do(func() error {
		link, err := netlink.LinkByName(DeviceName(network))
		if err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		if up {
			return netlink.LinkSetUp(link)
		}
		return netlink.LinkSetDown(link)
	})
}

// Permitted says whether this process may make namespaces here.
func Permitted() bool {
	w := &World{}
	_, err := w.newNamespace()
	return errors.Join(err, w.Close()) == nil
}
