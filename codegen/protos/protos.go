// Package protos holds the .proto files that interface files import: the
// deployment options and the types of the gateway's own API. They are part of
// the binary, so that a reader finds them without a search path.
package protos

import "embed"

//go:generate go run ../internal/protogen -root ../.. -I . carisma/options/v1/options.proto carisma/v1/event.proto carisma/v1/error.proto
//go:generate go run ../internal/protogen -root ../.. -grpc -I . carisma/v1/opaque.proto carisma/v1/catalog.proto

// FS holds the files under their import paths.
//
//go:embed carisma
var FS embed.FS
