package config_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/mesh/config"
)

// upper reads itself.
type upper string

func (u *upper) UnmarshalConfig(v config.Value) {
	text, ok := v.Text()
	if !ok || text != strings.ToUpper(text) {
		v.Fail("capital letters", "%q is not in capital letters", text)
		return
	}
	*u = upper(text)
}

type part struct {
	Pos  model.Position `yaml:"-"`
	Size uint32         `yaml:"size" default:"7"`
}

// CheckConfig is a rule of the whole part.
func (p *part) CheckConfig(v config.Value) {
	if p.Size > 10 {
		v.At("size").Fail("at most 10", "%d is too much", p.Size)
	}
}

type things struct {
	Flag   bool                  `yaml:"flag" default:"true"`
	Small  int8                  `yaml:"small"`
	Large  uint64                `yaml:"large"`
	Ratio  float64               `yaml:"ratio"`
	Wait   *time.Duration        `yaml:"wait"`
	Loud   upper                 `yaml:"loud"`
	List   []uint16              `yaml:"list" max:"9"`
	Named  map[string]netip.Addr `yaml:"named"`
	Parts  map[string]part       `yaml:"parts"`
	Part   part                  `yaml:"part"`
	Maybe  *part                 `yaml:"maybe"`
	Hidden string
}

func TestDecodeTypes(t *testing.T) {
	var got things
	require.NoError(t, config.Decode("t.yaml", []byte(`
flag: false
small: -128
large: 0xFFFFFFFFFFFFFFFF
ratio: 2
wait: 1m
loud: ABC
list: [0x1, 9]
named: {a: 10.0.0.1}
parts:
  x: {}
  y: {size: 3}
`), &got))
	require.False(t, got.Flag)
	require.EqualValues(t, -128, got.Small)
	require.EqualValues(t, uint64(1<<64-1), got.Large)
	require.InDelta(t, 2, got.Ratio, 0)
	require.Equal(t, time.Minute, *got.Wait)
	require.Equal(t, upper("ABC"), got.Loud)
	require.Equal(t, []uint16{1, 9}, got.List)
	require.Equal(t, map[string]netip.Addr{"a": netip.MustParseAddr("10.0.0.1")}, got.Named)
	require.EqualValues(t, 7, got.Parts["x"].Size)
	require.EqualValues(t, 3, got.Parts["y"].Size)
	require.EqualValues(t, 7, got.Part.Size, "a struct that is left out has its defaults")
	require.Equal(t, model.Position{File: "t.yaml", Line: 12, Column: 6}, got.Parts["y"].Pos)
	require.Nil(t, got.Maybe)
}

func TestDecodeReportsEveryMistake(t *testing.T) {
	var got things
	err := config.Decode("t.yaml", []byte(`
flag: yes
small: 128
large: -1
ratio: much
wait: 5
loud: abc
list: [1, 10, x]
named: {a: b}
parts: {x: {size: 11}}
part: {size: many}
Hidden: x
`), &got)
	require.EqualError(t, err, strings.TrimSpace(`
t.yaml:2:7: flag: "yes" is text; allowed: true, false
t.yaml:3:8: small: "128" is out of range; allowed: a whole number from -128 to 127, in decimal or with 0x
t.yaml:4:8: large: "-1" is out of range; allowed: a whole number from 0 to 18446744073709551615, in decimal or with 0x
t.yaml:5:8: ratio: "much" is text; allowed: a number
t.yaml:6:7: wait: "5" is not a duration; allowed: a number with a unit, such as 10ms, 1.5s or 2m
t.yaml:7:7: loud: "abc" is not in capital letters; allowed: capital letters
t.yaml:8:11: list[1]: "10" is out of range; allowed: at most 9
t.yaml:8:15: list[2]: "x" is text; allowed: a whole number, in decimal or with 0x
t.yaml:9:12: named.a: "b" is not an IP address; allowed: an IPv4 or IPv6 address, such as 10.0.0.1
t.yaml:10:19: parts.x.size: 11 is too much; allowed: at most 10
t.yaml:11:14: part.size: "many" is text; allowed: a whole number, in decimal or with 0x
t.yaml:12:1: unknown key "Hidden"; allowed: flag, small, large, ratio, wait, loud, list, named, parts, part, maybe`))
	require.EqualValues(t, 7, got.Part.Size, "a mistake leaves the default")
}

func TestRange(t *testing.T) {
	r := config.Range[uint16]{Min: 3, Max: 5}
	require.True(t, r.Contains(3))
	require.True(t, r.Contains(5))
	require.False(t, r.Contains(6))
	require.True(t, r.Overlaps(config.Range[uint16]{Min: 5, Max: 9}))
	require.False(t, r.Overlaps(config.Range[uint16]{Min: 6, Max: 9}))
	require.Equal(t, "3-5", r.String())
	require.Equal(t, "1m", config.Range[time.Duration]{Min: time.Minute, Max: time.Minute}.String())
	require.True(t, config.Range[uint16]{}.IsZero())
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("name: rear\nrole: satellite\naddress: 10.0.0.1\ncontrol_plane: 10.0.0.1:1\nnetworks: [{name: a, address: 10.0.0.1/8, client_ids: 1-2}]\n"))
	f.Add([]byte("a: &a [*a]\n---\nb: {<<: *a}\n"))
	f.Add([]byte("services: [{interface: a.v1.A, address: 'unix:/x'}]\nenvoy: {log_level: debug}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var n config.Node
		err := config.Decode("fuzz.yaml", data, &n)
		if err == nil {
			again, err := config.Encode(&n)
			require.NoError(t, err)
			var same config.Node
			require.NoError(t, config.Decode("again.yaml", again, &same), "%s", again)
			return
		}
		var mistake *config.Error
		require.ErrorAs(t, err, &mistake)
		require.Positive(t, mistake.Line)
		require.Positive(t, mistake.Column)
		_ = config.Decode("fuzz.yaml", data, new(things))
	})
}
