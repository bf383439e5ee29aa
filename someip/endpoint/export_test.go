package endpoint

import "golang.org/x/sys/unix"

// Option returns the value of a socket option.
func (u *UDP) Option(level, opt int) (v int, err error) {
	err = u.control(func(fd int) (err error) { v, err = unix.GetsockoptInt(fd, level, opt); return err })
	return v, err
}

// Option returns the value of a socket option.
func (c *Conn) Option(level, opt int) (v int, err error) {
	err = rawControl(c.out.raw, func(fd int) (err error) { v, err = unix.GetsockoptInt(fd, level, opt); return err })
	return v, err
}
