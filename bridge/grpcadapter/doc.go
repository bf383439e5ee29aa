// Package grpcadapter speaks gRPC: it exposes imported instances as typed gRPC
// services that need no generated code, and imports the gRPC services of the
// mesh.
//
// The data path passes protobuf bytes through; descriptors are parsed only when
// a client asks for reflection.
package grpcadapter
