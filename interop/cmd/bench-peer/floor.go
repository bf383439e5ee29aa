package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/net/ipv4"
)

// batch is how many datagrams one system call takes.
const batch = 32

// serveEcho is the floor of a call: a socket and nothing else.
func serveEcho(ctx context.Context, address string) error {
	conn, err := (&net.ListenConfig{}).ListenPacket(ctx, "udp4", address)
	if err != nil {
		return err
	}
	udp := conn.(*net.UDPConn)
	stop := context.AfterFunc(ctx, func() { _ = udp.Close() })
	defer stop()
	b := make([]byte, 2048)
	for {
		n, from, err := udp.ReadFromUDPAddrPort(b)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		_, _ = udp.WriteToUDPAddrPort(b[:n], from) // a lost echo is the reader's time-out
	}
}

// flood is the floor of events: for each line of the input count datagrams in batches.
func flood(ctx context.Context, address, size, count string) error {
	bytes, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	total, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp4", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	packets := ipv4.NewPacketConn(conn.(*net.UDPConn))
	messages := make([]ipv4.Message, batch)
	for i := range messages {
		messages[i].Buffers = [][]byte{make([]byte, bytes)}
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		for sent := 0; sent < total; {
			n, err := packets.WriteBatch(messages[:min(batch, total-sent)], 0)
			if err != nil {
				return err
			}
			sent += n
		}
	}
	return nil
}

// beat is the floor of an idle stack: a timer that says as much to a group each second
// as the offer of a service has, and a socket that hears it.
func beat(ctx context.Context, address, group string) error {
	own, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		return err
	}
	to, err := net.ResolveUDPAddr("udp4", group)
	if err != nil {
		return err
	}
	conn, err := net.ListenUDP("udp4", own)
	if err != nil {
		return err
	}
	defer conn.Close()
	dev, err := deviceOf(own.IP)
	if err != nil {
		return err
	}
	if err := ipv4.NewPacketConn(conn).SetMulticastInterface(dev); err != nil {
		return err
	}
	in, err := net.ListenMulticastUDP("udp4", dev, to)
	if err != nil {
		return err
	}
	defer in.Close()
	go func() {
		b := make([]byte, 2048)
		for {
			if _, _, err := in.ReadFromUDPAddrPort(b); err != nil {
				return // closed
			}
		}
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	b := make([]byte, 56)
	for {
		select {
		case <-tick.C:
			if _, err := conn.WriteToUDP(b, to); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// deviceOf returns the network device that has an address.
func deviceOf(ip net.IP) (*net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, dev := range all {
		addrs, err := dev.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(ip) {
				return &dev, nil
			}
		}
	}
	return nil, fmt.Errorf("no device has %v", ip)
}
