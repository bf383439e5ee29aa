package store

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Node is the record of a node. A superseded node keeps its record, so that its
// agent is told so also after a restart of the control plane (CAR-10).
type Node struct {
	ID    string
	Epoch uint64
	// Rank is the epoch in which the node's present life began: it stays when a
	// node resumes before its lease ends. The lowest owns what several nodes see.
	Rank       uint64
	Name       string
	Address    netip.Addr
	Central    bool
	Proxy      *Proxy `json:",omitempty"` // nil for a node without one
	MachineID  string
	BootID     string
	BootTime   int64 // start of the boot, Unix nanoseconds
	Registered time.Time
	Superseded bool
}

// Proxy says where the listeners of a node's proxy are.
type Proxy struct {
	Ingress       netip.AddrPort
	Egress        netip.AddrPort
	EgressSocket  string // empty for none
	GatewaySocket string
}

// MaxSuperseded bounds the records of superseded nodes; the oldest epochs go.
const MaxSuperseded = 256

// Nodes returns all nodes and the highest epoch ever given out.
func (s *Store) Nodes() ([]Node, uint64, error) {
	var nodes []Node
	var epoch uint64
	err := s.db.View(func(tx *bolt.Tx) error {
		epoch = getUint(tx.Bucket(bucketMeta), keyEpoch)
		return tx.Bucket(bucketNodes).ForEach(func(k, v []byte) error {
			var n Node
			if err := json.Unmarshal(v, &n); err != nil {
				return fmt.Errorf("node %s: %w", k, err)
			}
			nodes = append(nodes, n)
			return nil
		})
	})
	if err != nil {
		return nil, 0, fmt.Errorf("store: %w", err)
	}
	return nodes, epoch, nil
}

// PutNodes stores records and raises the epoch counter to epoch, all or nothing.
func (s *Store) PutNodes(epoch uint64, nodes ...Node) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		if meta := tx.Bucket(bucketMeta); epoch > getUint(meta, keyEpoch) {
			if err := putUint(meta, keyEpoch, epoch); err != nil {
				return err
			}
		}
		b := tx.Bucket(bucketNodes)
		for _, n := range nodes {
			if err := putJSON(b, n.ID, n); err != nil {
				return err
			}
		}
		return trimSuperseded(b)
	})
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func trimSuperseded(b *bolt.Bucket) error {
	var old [][]byte
	var oldest []byte
	lowest := ^uint64(0)
	err := b.ForEach(func(k, v []byte) error {
		var n Node
		if json.Unmarshal(v, &n) != nil || !n.Superseded {
			return nil
		}
		old = append(old, k)
		if n.Epoch < lowest {
			lowest, oldest = n.Epoch, k
		}
		return nil
	})
	if err != nil || len(old) <= MaxSuperseded {
		return err
	}
	// A registration supersedes at most one, so one goes for each that comes.
	return b.Delete(oldest)
}
