package main

import (
	"bufio"
	"context"
	"net"
	"os"
	"strconv"

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
