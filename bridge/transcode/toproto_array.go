package transcode

// arrayToProto translates the elements in r.src[off:stop], or the n.count first
// of them.
func (n *node) arrayToProto(r *run, dst []byte, off, stop int, lengthWidth uint8) ([]byte, int, *Error) {
	count := n.count
	if n.elemSize > 0 {
		var err *Error
		if stop, count, err = n.extent(off, stop, lengthWidth); err != nil {
			return dst, off, err
		}
		if n.packed {
			return n.packedToProto(r, dst, off, stop)
		}
	}
	if n.packed {
		return n.alignedToProto(r, dst, off, stop, lengthWidth)
	}
	for i := 0; i < count || count == 0 && off < stop; i++ {
		err := n.another(i, off)
		if err != nil {
			return dst, off, err
		}
		if n.elem.align > 1 {
			off += padding(off, int(n.elem.align))
		}
		if dst, off, err = n.elem.toProto(r, dst, off, stop, n.elem.lengthWidth, true); err != nil {
			return dst, off, err.atIndex(i)
		}
	}
	if lengthWidth > 0 {
		off = stop // of a fixed array that has grown
	}
	return dst, off, nil
}

// extent returns where an array of elements of equal size ends and how many
// there are.
func (n *node) extent(off, stop int, lengthWidth uint8) (end, count int, err *Error) {
	size := stop - off
	if n.count > 0 {
		want := n.count * n.elemSize
		if want > size {
			return 0, 0, truncated(off, want, max(size, 0))
		}
		if lengthWidth == 0 {
			return off + want, n.count, nil
		}
		return stop, n.count, nil
	}
	if size%n.elemSize != 0 {
		return 0, 0, malformed(off, "%d bytes are no multiple of the element's %d", size, n.elemSize)
	}
	count = size / n.elemSize
	if n.max > 0 && uint64(count) > n.max {
		return 0, 0, outOfRange(off, "%d elements, up to %d allowed", count, n.max)
	}
	return stop, count, nil
}

// packedToProto translates an array of numbers to a packed field.
func (n *node) packedToProto(r *run, dst []byte, off, stop int) ([]byte, int, *Error) {
	size := n.elemSize
	values := r.src[off:stop]
	if n.count > 0 {
		values = values[:n.count*size]
	}
	if len(values) == 0 {
		return dst, stop, nil
	}
	dst = appendVarint(dst, n.tag)
	m := len(dst)
	dst = reserve(dst, len(values))
	content := len(dst)
	for i := 0; i < len(values); i += size {
		v, err := n.elem.scalar.toProto(n.elem.scalar.read(values[i:i+size]), off+i)
		if err != nil {
			return dst, stop, err.atIndex(i / size)
		}
		dst = n.elem.scalar.emit(dst, v)
	}
	return patch(dst, m, content), stop, nil
}

// alignedToProto translates an array of numbers with alignment to a packed field.
func (n *node) alignedToProto(r *run, dst []byte, off, stop int, lengthWidth uint8) ([]byte, int, *Error) {
	start := len(dst)
	dst = appendVarint(dst, n.tag)
	m := len(dst)
	dst = reserve(dst, stop-off)
	content := len(dst)
	width := int(n.elem.scalar.width)
	for i := 0; i < n.count || n.count == 0 && off < stop; i++ {
		err := n.another(i, off)
		off += padding(off, int(n.elem.align))
		if err == nil && off+width > stop {
			err = truncated(off, width, max(stop-off, 0)).atIndex(i)
		}
		if err != nil {
			return dst, off, err
		}
		v, err := n.elem.scalar.toProto(n.elem.scalar.read(r.src[off:off+width]), off)
		if err != nil {
			return dst, off, err.atIndex(i)
		}
		dst = n.elem.scalar.emit(dst, v)
		off += width
	}
	if lengthWidth > 0 {
		off = stop
	}
	if len(dst) == content {
		return dst[:start], off, nil
	}
	return patch(dst, m, content), off, nil
}

// another checks that an array may have one more element.
func (n *node) another(i, off int) *Error {
	if n.max > 0 && uint64(i) >= n.max {
		return outOfRange(off, "more than %d elements, up to %d allowed", n.max, n.max)
	}
	return nil
}
