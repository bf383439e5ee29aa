// Package cabin is the sample vehicle: its interfaces and programs.
package cabin

//go:generate go run ../../codegen/internal/protogen -root ../.. -grpc -I ../../codegen/protos -I interfaces cabin/climate/v1/climate.proto cabin/trip/v1/trip.proto
