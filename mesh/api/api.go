// Package api holds the protobuf contracts between nodes and the control plane
// and what both sides of them share: metadata keys, mesh names and times.
package api

import "time"

//go:generate go run ../../codegen/internal/protogen -root ../.. -grpc -I . carisma/mesh/v1/mesh.proto

// Metadata keys of requests to the control plane (CAR-12).
const (
	NodeIDHeader    = "carisma-node-id"
	NodeEpochHeader = "carisma-node-epoch"
)

// InstanceHeader is the metadata key with the exact instance name of a call.
const InstanceHeader = "carisma-instance"

// Times of a node's lease.
const (
	HeartbeatInterval = 250 * time.Millisecond
	LeaseTimeout      = 900 * time.Millisecond
)
