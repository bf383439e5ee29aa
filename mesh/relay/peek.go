package relay

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// form has the field numbers of one of the two forms of ADS. The relay reads a
// few fields of a message and passes the bytes on untouched. Only the delta form
// tells on reconnect what Envoy holds.
type form struct {
	node, held, reqType, reqNonce, errorDetail protowire.Number
	resources, respType, respNonce             protowire.Number
}

var (
	// DeltaDiscoveryRequest and DeltaDiscoveryResponse.
	delta = form{node: 1, held: 5, reqType: 2, reqNonce: 6, errorDetail: 7, resources: 2, respType: 4, respNonce: 5}
	// DiscoveryRequest and DiscoveryResponse.
	sotw = form{node: 2, reqType: 4, reqNonce: 5, errorDetail: 6, resources: 2, respType: 4, respNonce: 5}
)

func formOf(method string) form {
	if method == streamMethod {
		return sotw
	}
	return delta
}

type request struct {
	nodeID  string
	typeURL string
	nonce   string
	held    []string // names of resources that Envoy has of an earlier stream
	failed  bool
	reason  string
}

type response struct {
	typeURL   string
	nonce     string
	resources int
	clusters  map[string]bool // of endpoints: whether there is one
	raw       []byte          // the message, of a delta response
}

func (f form) request(msg []byte) (request, error) {
	var r request
	err := fields(msg, func(n protowire.Number, v []byte) error {
		switch n {
		case f.node:
			// Field 1 of core.v3.Node is its id.
			return fields(v, first(1, &r.nodeID))
		case f.held:
			var name string
			err := fields(v, first(1, &name)) // the key of a map entry
			r.held = append(r.held, name)
			return err
		case f.reqType:
			r.typeURL = string(v)
		case f.reqNonce:
			r.nonce = string(v)
		case f.errorDetail:
			r.failed = true
			// Field 2 of google.rpc.Status is its message.
			return fields(v, first(2, &r.reason))
		default:
		}
		return nil
	})
	return r, err
}

func (f form) response(msg []byte) (response, error) {
	var r response
	err := fields(msg, func(n protowire.Number, v []byte) error {
		switch n {
		case f.resources:
			r.resources++
		case f.respType:
			r.typeURL = string(v)
		case f.respNonce:
			r.nonce = string(v)
		default:
		}
		return nil
	})
	if err == nil && r.typeURL == endpointType {
		r.clusters, err = f.endpoints(msg)
	}
	return r, err
}

func first(want protowire.Number, to *string) func(protowire.Number, []byte) error {
	return func(n protowire.Number, v []byte) error {
		if n == want {
			*to = string(v)
		}
		return nil
	}
}

var errMalformed = errors.New("malformed xDS message")

// fields calls fn with each length-delimited field of a message.
func fields(msg []byte, fn func(protowire.Number, []byte) error) error {
	for at := 0; at < len(msg); {
		num, typ, n := protowire.ConsumeTag(msg[at:])
		if n < 0 {
			return fmt.Errorf("%w: offset %d", errMalformed, at)
		}
		at += n
		if typ != protowire.BytesType {
			n = protowire.ConsumeFieldValue(num, typ, msg[at:])
			if n < 0 {
				return fmt.Errorf("%w: offset %d", errMalformed, at)
			}
			at += n
			continue
		}
		v, n := protowire.ConsumeBytes(msg[at:])
		if n < 0 {
			return fmt.Errorf("%w: offset %d", errMalformed, at)
		}
		if err := fn(num, v); err != nil {
			return err
		}
		at += n
	}
	return nil
}
