package config_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/config"
)

// The schema in the docs is the one of the types: go generate writes it.
func TestSchemaIsUpToDate(t *testing.T) {
	want, err := os.ReadFile("../../docs/schema/node.schema.json")
	require.NoError(t, err)
	require.Equal(t, string(want), string(config.Schema(config.Node{})), "run go generate ./mesh/config")
}

func TestSchema(t *testing.T) {
	var got map[string]any
	require.NoError(t, json.Unmarshal(config.Schema(things{}), &got))
	require.Equal(t, false, got["additionalProperties"])
	p := got["properties"].(map[string]any)
	require.Equal(t, map[string]any{"type": "boolean", "default": true}, p["flag"])
	require.Equal(t, map[string]any{"type": "array", "items": map[string]any{"type": "integer", "minimum": 0.0, "maximum": 9.0}}, p["list"])
	require.Equal(t, map[string]any{"$ref": "#/$defs/part"}, p["maybe"])
	require.Equal(t, map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}, p["named"])
	require.Equal(t, map[string]any{}, p["loud"])
	require.NotContains(t, p, "Hidden")
}
