// Package capture reads SOME/IP messages from packet captures: pcap and pcapng
// files, gzip-compressed or not, of Ethernet, PPI, Linux "any" and raw IP, with
// VLAN tags, IPv4 and IPv6, UDP and TCP.
//
// Ports that carry SOME/IP are those given, those that service discovery offers
// in the capture itself, and those where messages are found by their form. What is
// malformed on such a port is reported with its place, and reading goes on behind
// it.
package capture
