package proto

import (
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"carisma.dev/gateway/codegen/protos/optionsv1"
)

var optionInMessage = regexp.MustCompile(`(?:option \(|extension )(carisma\.options\.v1\.\w+)`)

// optionHint says what is allowed where protocompile complains about one of our
// options.
func optionHint(message string) string {
	m := optionInMessage.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	var names []string
	extensions := optionsv1.File_carisma_options_v1_options_proto.Extensions()
	for i := range extensions.Len() {
		if x := extensions.Get(i); string(x.FullName()) == m[1] {
			return string(x.Name()) + " " + outline(x.Message(), map[protoreflect.FullName]bool{})
		}
		names = append(names, string(extensions.Get(i).Name()))
	}
	return strings.Join(names, ", ")
}

// outline writes the members of an option, with those of their members: of each type
// once.
func outline(m protoreflect.MessageDescriptor, told map[protoreflect.FullName]bool) string {
	if told[m.FullName()] {
		return "{ … }"
	}
	told[m.FullName()] = true
	parts := make([]string, m.Fields().Len())
	for i := range parts {
		f := m.Fields().Get(i)
		parts[i] = string(f.Name())
		switch {
		case f.Message() != nil:
			parts[i] += " " + outline(f.Message(), told)
		case f.Enum() != nil:
			var literals []string
			for n := range f.Enum().Values().Len() {
				literals = append(literals, string(f.Enum().Values().Get(n).Name()))
			}
			parts[i] += ": " + strings.Join(literals[1:], " | ")
		default:
			parts[i] += ": " + f.Kind().String()
		}
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
