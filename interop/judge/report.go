package judge

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// several separates the values of a field that occurs more than once in a frame:
// a character that no text of tshark holds.
const several = "\x1f"

// fields are what tshark prints of each frame, in this order. Those of SOME/IP
// occur once per message.
var fields = []string{
	"frame.number", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "udp.srcport", "udp.dstport", "tcp.srcport", "tcp.dstport",
	"someip.messageid", "someip.clientid", "someip.sessionid", "someip.messagetype", "someip.returncode",
	"_ws.malformed", "_ws.expert.severity", "_ws.expert.message",
}

// warning is tshark's severity from which on an expert info is a problem.
const warning = 0x00600000

// Message is a SOME/IP message as tshark decoded it.
type Message struct {
	Frame           int
	TCP             bool
	Source, Dest    netip.AddrPort
	Service, Method uint16
	Client, Session uint16
	Type            byte
	ReturnCode      byte
}

// SD tells whether the message is one of service discovery.
func (m Message) SD() bool { return m.Service == 0xFFFF && m.Method == 0x8100 }

// Finding is what tshark finds wrong with a frame.
type Finding struct {
	Frame int
	Text  string
}

// Report is the judgement of a capture.
type Report struct {
	Messages  []Message
	Malformed []Finding
	Warnings  []Finding // expert infos of severity warning and above
	Stderr    string    // what tshark complained about
}

// Count returns how many messages match.
func (r *Report) Count(match func(Message) bool) int {
	n := 0
	for _, m := range r.Messages {
		if match(m) {
			n++
		}
	}
	return n
}

// Err is nil where nothing is malformed, nothing warned of and nothing complained
// about.
func (r *Report) Err() error {
	var problems []error
	for _, f := range r.Malformed {
		problems = append(problems, fmt.Errorf("frame %d is malformed: %s", f.Frame, f.Text))
	}
	for _, f := range r.Warnings {
		problems = append(problems, fmt.Errorf("frame %d: %s", f.Frame, f.Text))
	}
	if r.Stderr != "" {
		problems = append(problems, fmt.Errorf("tshark says: %s", r.Stderr))
	}
	return errors.Join(problems...)
}

// parse reads tshark's lines, one per frame.
func parse(out string) (*Report, error) {
	r := &Report{}
	for line := range strings.Lines(out) {
		columns := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(columns) != len(fields) {
			return nil, fmt.Errorf("tshark printed %d fields, not %d: %q", len(columns), len(fields), line)
		}
		if err := r.addFrame(columns); err != nil {
			return nil, fmt.Errorf("%w in tshark's line %q", err, line)
		}
	}
	return r, nil
}

func (r *Report) addFrame(columns []string) error {
	values := make(map[string][]string, len(fields))
	for i, name := range fields {
		if columns[i] != "" {
			values[name] = strings.Split(columns[i], several)
		}
	}
	frame, err := strconv.Atoi(columns[0])
	if err != nil {
		return err
	}
	malformed := len(values["_ws.malformed"]) > 0
	if malformed {
		r.Malformed = append(r.Malformed, Finding{frame, strings.Join(values["_ws.expert.message"], "; ")})
	}
	for i, s := range values["_ws.expert.severity"] {
		severity, err := strconv.ParseUint(s, 0, 32)
		if err != nil {
			return err
		}
		if severity < warning {
			continue
		}
		text := ""
		if all := values["_ws.expert.message"]; i < len(all) {
			text = all[i]
		}
		r.Warnings = append(r.Warnings, Finding{frame, text})
	}
	if err := r.addMessages(frame, values); err != nil && !malformed {
		return err
	}
	return nil
}

// addMessages adds the messages of a frame, or none where something of one is missing,
// as in a malformed frame.
func (r *Report) addMessages(frame int, values map[string][]string) error {
	var all []Message
	source, dest, tcp, err := ends(values)
	if err != nil {
		return err
	}
	number := func(name string, i, bits int) uint64 {
		all := values[name]
		if i >= len(all) {
			err = errors.Join(err, fmt.Errorf("message %d without %s", i+1, name))
			return 0
		}
		n, e := strconv.ParseUint(all[i], 0, bits)
		err = errors.Join(err, e)
		return n
	}
	for i := range values["someip.messageid"] {
		id := number("someip.messageid", i, 32)
		all = append(all, Message{
			Frame: frame, TCP: tcp, Source: source, Dest: dest,
			Service: uint16(id >> 16), Method: uint16(id),
			Client:     uint16(number("someip.clientid", i, 16)),
			Session:    uint16(number("someip.sessionid", i, 16)),
			Type:       byte(number("someip.messagetype", i, 8)),
			ReturnCode: byte(number("someip.returncode", i, 8)),
		})
	}
	if err == nil {
		r.Messages = append(r.Messages, all...)
	}
	return err
}

// ends returns the two ends of a frame; those of other than IP stay zero.
func ends(values map[string][]string) (source, dest netip.AddrPort, tcp bool, err error) {
	tcp = len(values["tcp.srcport"]) > 0
	transport := "udp"
	if tcp {
		transport = "tcp"
	}
	end := func(which string) netip.AddrPort {
		address, port := slices.Concat(values["ip."+which], values["ipv6."+which]), values[transport+"."+which+"port"]
		if len(address) == 0 || len(port) == 0 {
			return netip.AddrPort{}
		}
		a, e1 := netip.ParseAddr(address[0])
		p, e2 := strconv.ParseUint(port[0], 10, 16)
		err = errors.Join(err, e1, e2)
		return netip.AddrPortFrom(a, uint16(p))
	}
	return end("src"), end("dst"), tcp, err
}
