package capture

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// ErrFormat says that something is neither a pcap nor a pcapng file.
var ErrFormat = errors.New("capture: neither pcap nor pcapng")

// source yields the frames of a file. The bytes are valid until the next call.
type source interface {
	next() (frame []byte, link layers.LinkType, info gopacket.CaptureInfo, err error)
}

type classic struct{ *pcapgo.Reader }

func (s classic) next() ([]byte, layers.LinkType, gopacket.CaptureInfo, error) {
	data, info, err := s.ZeroCopyReadPacketData()
	return data, s.LinkType(), info, err
}

type ng struct{ *pcapgo.NgReader }

func (s ng) next() ([]byte, layers.LinkType, gopacket.CaptureInfo, error) {
	data, info, err := s.ZeroCopyReadPacketData()
	link := layers.LinkTypeEthernet
	if err == nil && len(info.AncillaryData) > 0 {
		if t, ok := info.AncillaryData[0].(layers.LinkType); ok {
			link = t
		}
	}
	return data, link, info, err
}

const (
	magicGzip = 0x1F8B
	magicNG   = 0x0A0D0D0A
)

// openSource looks at the first bytes, not at a name.
func openSource(r io.Reader) (source, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	if head, err := b.Peek(2); err == nil && binary.BigEndian.Uint16(head) == magicGzip {
		unzipped, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("capture: %w", err)
		}
		b = bufio.NewReaderSize(unzipped, 1<<16)
	}
	head, err := b.Peek(4)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, ErrFormat
		}
		return nil, fmt.Errorf("capture: %w", err)
	}
	switch binary.LittleEndian.Uint32(head) {
	case magicNG:
		r, err := pcapgo.NewNgReader(b, pcapgo.NgReaderOptions{WantMixedLinkType: true, SkipUnknownVersion: true})
		if err != nil {
			return nil, fmt.Errorf("capture: pcapng: %w", err)
		}
		return ng{r}, nil
	case 0xA1B2C3D4, 0xD4C3B2A1, 0xA1B23C4D, 0x4D3CB2A1:
		r, err := pcapgo.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("capture: pcap: %w", err)
		}
		return classic{r}, nil
	}
	return nil, ErrFormat
}
