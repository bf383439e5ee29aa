package relay

import "google.golang.org/protobuf/encoding/protowire"

const endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"

// endpoints returns the clusters whose assignment a response has, and whether
// there is an endpoint in it.
func (f form) endpoints(msg []byte) (map[string]bool, error) {
	clusters := map[string]bool{}
	err := fields(msg, func(n protowire.Number, v []byte) error {
		if n != f.resources {
			return nil
		}
		// Of a SotW response it is the Any itself, of a delta response field 2 of
		// the Resource.
		if f != delta {
			return assignment(v, clusters)
		}
		return fields(v, func(n protowire.Number, v []byte) error {
			if n != 2 {
				return nil
			}
			return assignment(v, clusters)
		})
	})
	return clusters, err
}

// assignment reads a ClusterLoadAssignment in an Any: its value is field 2, in it
// the name of the cluster field 1 and an endpoint each field 2.
func assignment(packed []byte, clusters map[string]bool) error {
	return fields(packed, func(n protowire.Number, v []byte) error {
		if n != 2 {
			return nil
		}
		name, some := "", false
		err := fields(v, func(n protowire.Number, v []byte) error {
			some = some || n == 2
			return first(1, &name)(n, v)
		})
		clusters[name] = some
		return err
	})
}
