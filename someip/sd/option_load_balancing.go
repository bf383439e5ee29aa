package sd

import "encoding/binary"

const loadBalancingSize = 4

// LoadBalancingOption returns the option that ranks instances of a service:
// those of the lowest priority value are preferred, and chosen among at random
// in proportion to their weights.
func LoadBalancingOption(priority, weight uint16) Option {
	return Option{Type: OptionLoadBalancing, Priority: priority, Weight: weight}
}

func (o *Option) parseLoadBalancing(b []byte) bool {
	if len(b) != loadBalancingSize {
		return false
	}
	o.Priority, o.Weight = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	return true
}

func (o *Option) appendLoadBalancing(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, o.Priority)
	return binary.BigEndian.AppendUint16(b, o.Weight)
}
