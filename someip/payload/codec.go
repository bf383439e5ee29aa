package payload

// Options are how a codec treats what is not as it should be.
type Options struct {
	// Strict refuses what a tolerant reader lets pass: byte order mark or
	// terminator other than configured, booleans beyond 0 and 1, bytes behind the
	// last member of a struct or message, unknown data ids.
	Strict bool
	// MaxElements limits the elements of all arrays and maps of a message
	// together; 0 for DefaultMaxElements.
	MaxElements int
}

// DefaultMaxElements is the default of Options.MaxElements.
const DefaultMaxElements = 1 << 20

// Codec translates between payload bytes and Go values. It is immutable and safe
// for concurrent use.
//
// The Go values are:
//
//	bool            bool
//	uint, enum      uint64 (a signed enum int64)
//	int             int64
//	float           float32 or float64
//	string          string
//	bytes           []byte
//	array           []any
//	struct          map[string]any, absent optional members missing
//	map             []Entry
//	union           Alternative
//
// An encoder also takes any Go integer for a number, and []byte for an array of
// bytes.
type Codec struct {
	layout *Layout
	strict bool
	limit  int
}

// Entry is an entry of a map. A decoder keeps the order on the wire, and of
// entries with the same key the last.
type Entry struct{ Key, Value any }

// Alternative is the value of a union: the type field, 0 for none, and the value of
// that alternative. A decoder leaves Value nil for a type that the layout does
// not know, which an encoder refuses.
type Alternative struct {
	Type  uint32
	Value any
}

// Compile returns the codec of a valid layout. The layout must not change
// afterwards.
func Compile(l *Layout, o Options) (*Codec, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	if o.MaxElements <= 0 {
		o.MaxElements = DefaultMaxElements
	}
	return &Codec{layout: l, strict: o.Strict, limit: o.MaxElements}, nil
}

// Decode returns the value of a payload. Bytes behind it are ignored, unless the
// codec is strict (HDR-6). The value shares no memory with the payload. Errors
// are an *Error with path and offset.
func (c *Codec) Decode(payload []byte) (any, error) {
	d := decoder{Reader: NewReader(payload), strict: c.strict, left: c.limit}
	v, err := d.value(c.layout, c.layout.LengthWidth, 0)
	if err == nil && c.strict && d.Remaining() > 0 {
		err = fail(d.Offset(), ErrMalformed, "%d bytes behind the end", d.Remaining())
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Append appends the bytes of a value to dst. Errors are an *Error with path;
// dst is then returned as it was.
func (c *Codec) Append(dst []byte, value any) ([]byte, error) {
	e := encoder{Writer: NewWriter(dst)}
	if err := e.value(c.layout, value, c.layout.LengthWidth, 0); err != nil {
		return dst, err
	}
	return e.b, nil
}
