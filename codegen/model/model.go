// Package model is the neutral interface model: types, methods, events, fields,
// versions and deployments, whatever format they were read from. Readers fill
// it, writers and translators work from it.
//
// A model is immutable once a reader has returned it and may be shared between
// goroutines.
package model

import (
	"fmt"
	"strings"
)

// Position is a place in a source file. Line and column count from 1; a zero
// line means that only the file is known.
type Position struct {
	File         string
	Line, Column int
}

func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Version is the version of a service interface. Instances with the same major
// version are compatible.
type Version struct {
	Major, Minor uint32
}

// Interface is a service interface: the contract of its instances.
type Interface struct {
	Pos     Position
	Package string // without the version, such as "cabin.climate"
	Name    string // such as "Climate"
	Version Version

	Methods []*Method // without getters and setters
	Events  []*Event  // without notifiers
	Fields  []*Field
	// Unexposed lists the rpcs that no legacy protocol can carry, with the reason.
	Unexposed []Unexposed

	SOMEIP *SOMEIPService // nil if it has no SOME/IP deployment
}

// FullName returns the name of the gRPC service, such as
// "cabin.climate.v1.Climate".
func (i *Interface) FullName() string {
	return fmt.Sprintf("%s.v%d.%s", i.Package, i.Version.Major, i.Name)
}

// MeshName returns the mesh name of an instance of the interface.
func (i *Interface) MeshName(instance string) string {
	return MeshName(i.FullName(), instance)
}

// MeshName returns the mesh name of an instance of the interface with the given
// full name: the authority under which the mesh routes to it. Bytes of the
// instance name outside [a-z0-9-] become _xx; an instance without a name is
// "default".
func MeshName(interfaceFullName, instance string) string {
	if instance == "" {
		instance = "default"
	}
	var b strings.Builder
	for _, c := range []byte(strings.ToLower(instance)) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	b.WriteByte('.')
	b.WriteString(strings.ToLower(interfaceFullName))
	return b.String()
}

// Unexposed is an rpc that cannot be exposed on SOME/IP or D-Bus.
type Unexposed struct {
	RPC    string
	Reason string
}

// Method is a method, or the getter or setter of a field.
type Method struct {
	Pos           Position
	Name          string // of the method: "SetVents"
	RPC           string // of the rpc: also "SetVents", but "GetTargetTemperature" for a getter
	In, Out       *Struct
	FireAndForget bool
	Idempotent    bool
	SOMEIP        *SOMEIPElement
}

// Event is an event, or the notifier of a field.
type Event struct {
	Pos    Position
	Name   string // of the event: "AirQuality"
	RPC    string // of the rpc: "WatchAirQuality"
	Args   *Struct
	Field  *Field // the field it notifies, nil for an event
	SOMEIP *SOMEIPElement
	// MetaNumber is the number of the carisma.v1.EventMeta member in the stream's
	// message, 0 if it has none. Args does not list that member.
	MetaNumber int32
}

// Field is a value with access: each of getter, setter and notifier may be nil.
type Field struct {
	Pos      Position
	Name     string
	Getter   *Method
	Setter   *Method
	Notifier *Event
}

// AllMethods returns methods, getters and setters.
func (i *Interface) AllMethods() []*Method {
	all := append([]*Method(nil), i.Methods...)
	for _, f := range i.Fields {
		if f.Getter != nil {
			all = append(all, f.Getter)
		}
		if f.Setter != nil {
			all = append(all, f.Setter)
		}
	}
	return all
}

// AllEvents returns events and notifiers.
func (i *Interface) AllEvents() []*Event {
	all := append([]*Event(nil), i.Events...)
	for _, f := range i.Fields {
		if f.Notifier != nil {
			all = append(all, f.Notifier)
		}
	}
	return all
}
