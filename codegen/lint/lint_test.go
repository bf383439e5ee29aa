package lint_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/lint"
	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/codegen/proto"
)

var update = flag.Bool("update", false, "write the golden files")

func check(t *testing.T, path string) string {
	t.Helper()
	set, err := proto.Load(path)
	require.NoError(t, err)
	var b strings.Builder
	for _, f := range lint.Check(set.Interfaces) {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

func TestCheck(t *testing.T) {
	const golden = "testdata/findings.golden"
	got := check(t, "testdata/interfaces")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// The sample vehicle has nothing worse than messages without a limit.
func TestCabin(t *testing.T) {
	set, err := proto.Load("../../vehicles/cabin/interfaces")
	require.NoError(t, err)
	for _, f := range lint.Check(set.Interfaces) {
		require.Equal(t, lint.Info, f.Severity, "%v", f)
	}
}

// A reader of another format may not know what an enum can hold.
func TestEnumWidth(t *testing.T) {
	pos := model.Position{File: "a.fidl", Line: 3, Column: 1}
	enum := &model.Enum{Pos: pos, Name: "a.Level", Width: 1, Literals: []model.Literal{{Name: "LOW", Value: 255}, {Name: "HIGH", Value: 256}}}
	args := &model.Struct{Members: []*model.Member{{Name: "level", Type: &model.Type{
		Kind: model.EnumKind, Enum: enum, SOMEIP: model.SOMEIPType{Width: 1, DataID: -1},
	}}}}
	got := lint.Check([]*model.Interface{{
		Pos: pos, Package: "a", Name: "A", SOMEIP: &model.SOMEIPService{ServiceID: 1},
		Methods: []*model.Method{{Pos: pos, Name: "Set", RPC: "Set", In: args, Out: args, SOMEIP: &model.SOMEIPElement{ID: 1}}},
	}})
	require.Equal(t, []lint.Finding{
		{Pos: pos, Severity: lint.Error, Rule: "enum-width", Message: "HIGH = 256 does not fit the width 1 of a.Level"},
	}, got)
	require.Equal(t, "a.fidl:3:1: error: HIGH = 256 does not fit the width 1 of a.Level (enum-width)", got[0].String())
}

// A type inside itself has no size, and is walked once.
func TestRecursion(t *testing.T) {
	tree := &model.Struct{Name: "a.Tree"}
	tree.Members = []*model.Member{{Name: "more", Type: &model.Type{
		Kind: model.ArrayKind, SOMEIP: model.SOMEIPType{LengthWidth: 4, DataID: -1},
		Elem: &model.Type{Kind: model.StructKind, Struct: tree, SOMEIP: model.SOMEIPType{DataID: -1}},
	}}}
	got := lint.Check([]*model.Interface{{
		Package: "a", Name: "A", SOMEIP: &model.SOMEIPService{ServiceID: 1},
		Methods: []*model.Method{{RPC: "Walk", In: tree, FireAndForget: true, Out: &model.Struct{}, SOMEIP: &model.SOMEIPElement{ID: 1}}},
	}})
	require.Len(t, got, 1)
	require.Equal(t, "the request of Walk has no upper limit, but UDP carries at most 1400 bytes", got[0].Message)
}
