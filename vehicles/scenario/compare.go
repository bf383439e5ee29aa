package scenario

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"carisma.dev/gateway/codegen/protos/carismav1"
)

// sameJSON reports whether two JSON texts mean the same.
func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// hasMembers reports whether an object has at least the wanted members, at any
// depth of objects.
func hasMembers(item, want string) bool {
	var x, y any
	return json.Unmarshal([]byte(item), &x) == nil && json.Unmarshal([]byte(want), &y) == nil && contains(x, y)
}

func contains(x, want any) bool {
	object, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(x, want)
	}
	of, ok := x.(map[string]any)
	if !ok {
		return false
	}
	for k, v := range object {
		if !contains(of[k], v) {
			return false
		}
	}
	return true
}

// check compares a status with the expected one and returns what of it belongs
// in a transcript: nothing that differs from run to run.
func (e *Error) check(err error) (string, error) {
	s, ok := status.FromError(err)
	if err == nil || !ok {
		return "", fmt.Errorf("expected %s, got %w", e.Code, orNil(err))
	}
	var detail *carismav1.ErrorDetail
	for _, d := range s.Details() {
		if d, ok := d.(*carismav1.ErrorDetail); ok {
			detail = d
		}
	}
	switch {
	case codeName(s.Code()) != e.Code:
	case !e.Message.matches(s.Message()):
	case e.ReturnCode != 0 && detail.GetReturnCode() != e.ReturnCode:
	case e.Application != "" && detail.GetApplicationError() != e.Application:
	case e.FieldPath != "" && detail.GetFieldPath() != e.FieldPath:
	case e.Reason.re != nil && (!e.Reason.matches(detail.GetReason()) || detail.GetSince() == nil):
	default:
		return e.transcript(detail), nil
	}
	return "", fmt.Errorf("expected %s, got %s %q, detail {%s}", e.transcript(nil), codeName(s.Code()), s.Message(), detail)
}

func (e *Error) transcript(detail *carismav1.ErrorDetail) string {
	parts := []string{e.Code}
	if e.Application != "" {
		parts = append(parts, e.Application)
	}
	if e.ReturnCode != 0 {
		parts = append(parts, fmt.Sprintf("return code 0x%02X", e.ReturnCode))
	}
	if e.FieldPath != "" {
		parts = append(parts, "at "+e.FieldPath)
	}
	if e.Reason.re != nil && detail != nil {
		parts = append(parts, fmt.Sprintf("because %s, since a time", detail.GetReason()))
	} else if e.Reason.re != nil {
		parts = append(parts, "because "+e.Reason.re.String())
	}
	return strings.Join(parts, ", ")
}

// orNil makes an error of a missing one.
func orNil(err error) error {
	if err == nil {
		return fmt.Errorf("no error")
	}
	return err
}

// codeName is the name of a code as gRPC's own text has it.
func codeName(c codes.Code) string {
	var name strings.Builder
	for i, r := range c.String() {
		if i > 0 && r >= 'A' && r <= 'Z' && c != codes.OK {
			name.WriteByte('_')
		}
		name.WriteRune(r)
	}
	if c == codes.Canceled {
		return "CANCELLED"
	}
	return strings.ToUpper(name.String())
}
