package someip

// NextSession returns the session id that follows s: 0 means that session
// handling is off, so it is skipped when the counter wraps (SES-1). The first
// session is NextSession(0) = 1.
func NextSession(s uint16) uint16 {
	if s == 0xFFFF {
		return 1
	}
	return s + 1
}
