// Package widev1 holds messages for tests and benchmarks of the transcoder.
package widev1

//go:generate go run ../../../../codegen/internal/protogen -root ../../../.. -I . -I ../../../../codegen/protos wide.proto
