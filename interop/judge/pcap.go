package judge

import (
	"encoding/binary"
	"io"
	"time"
)

// snapLen is the largest frame that is kept whole: above what segmentation
// offload of a virtual device hands over at once.
const snapLen = 256 << 10

// PcapWriter writes Ethernet frames as a pcap file with times in nanoseconds.
type PcapWriter struct {
	w io.Writer
}

// NewPcapWriter writes the file header.
func NewPcapWriter(w io.Writer) (*PcapWriter, error) {
	h := make([]byte, 0, 24)
	h = binary.LittleEndian.AppendUint32(h, 0xA1B23C4D) // nanoseconds
	h = binary.LittleEndian.AppendUint16(h, 2)
	h = binary.LittleEndian.AppendUint16(h, 4)
	h = binary.LittleEndian.AppendUint64(h, 0) // time zone, accuracy
	h = binary.LittleEndian.AppendUint32(h, snapLen)
	h = binary.LittleEndian.AppendUint32(h, 1) // Ethernet
	_, err := w.Write(h)
	return &PcapWriter{w: w}, err
}

// Write appends one frame, seen at a time.
func (p *PcapWriter) Write(at time.Time, frame []byte) error {
	kept := frame[:min(len(frame), snapLen)]
	h := make([]byte, 0, 16)
	h = binary.LittleEndian.AppendUint32(h, uint32(at.Unix()))
	h = binary.LittleEndian.AppendUint32(h, uint32(at.Nanosecond()))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(kept)))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(frame)))
	if _, err := p.w.Write(h); err != nil {
		return err
	}
	_, err := p.w.Write(kept)
	return err
}
