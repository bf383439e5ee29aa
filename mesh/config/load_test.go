package config_test

import (
	"flag"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/model"
	"carisma.dev/gateway/mesh/config"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// Each file of testdata/bad has one kind of mistake; every mistake in it has a
// place (interop cases 50 and 74 are ttl_zero and sd_port).
func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			_, err := config.Load(path)
			require.Error(t, err)
			for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
				var mistake *config.Error
				require.ErrorAs(t, err, &mistake)
				require.Equal(t, path, mistake.File)
				require.Positive(t, mistake.Line, "%v", err)
				require.Positive(t, mistake.Column, "%v", err)
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".golden", err.Error()+"\n")
		})
	}
	goldens, err := filepath.Glob("testdata/bad/*.golden")
	require.NoError(t, err)
	require.Len(t, goldens, len(files), "a golden file without a .yaml")
}

func TestLoad(t *testing.T) {
	got, err := config.Load("testdata/node.yaml")
	require.NoError(t, err)
	want := &config.Node{
		Name: "rear", Role: config.Satellite, Address: netip.MustParseAddr("10.77.1.2"),
		Ingress:      config.Ingress{Port: 16001},
		Egress:       config.Egress{Address: netip.MustParseAddr("127.0.0.2"), Port: 16000, Socket: "testdata/run/egress.sock"},
		ControlPlane: netip.MustParseAddrPort("10.77.1.1:15010"),
		State:        "testdata/state/rear",
		Interfaces:   []string{"testdata/interfaces", "testdata/extra/radio.proto"},
		Networks: []config.Network{
			{
				Name: "body", Address: netip.MustParsePrefix("10.77.2.1/24"), Interface: "eth1",
				SD: config.SD{
					Group: netip.MustParseAddr("224.244.224.246"), Port: 30491,
					InitialDelay:         config.Range[time.Duration]{Max: 20 * time.Millisecond},
					RepetitionsBaseDelay: 30 * time.Millisecond, CyclicOfferDelay: 2 * time.Second, TTL: config.InfiniteTTL,
					RequestResponseDelay: config.Range[time.Duration]{Min: 5 * time.Millisecond, Max: 5 * time.Millisecond},
				},
				ClientIDs: config.Range[uint16]{Min: 0x1100, Max: 0x11ff},
				Ports:     config.Range[uint16]{Min: 40000, Max: 40099},
				Expose: &config.Expose{
					Services: []config.ExposedService{
						{Interface: "cabin.trip.v1.TripComputer"}, {Interface: "cabin.climate.v1.Climate", Instance: "left"},
					},
					SOMEIP: []config.ExposedSOMEIP{
						{Network: "silent", Service: 0x6001},
						{Network: "silent", Service: 0x6002, Instance: 1, As: config.SOMEIPIDs{Service: 0x7001, Instance: 2}},
					},
				},
			},
			{
				Name: "silent", Address: netip.MustParsePrefix("fd00::1/64"),
				Replicas: []config.Replicas{{Interface: "cabin.climate.v1.Climate", Name: "any", Instances: []string{"left", "right"}}},
				SD: config.SD{
					Group: netip.MustParseAddr("ff14::1"), Port: 30490,
					InitialDelay:         config.Range[time.Duration]{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond},
					RepetitionsBaseDelay: 100 * time.Millisecond, RepetitionsMax: 3, CyclicOfferDelay: time.Second, TTL: 3 * time.Second,
					RequestResponseDelay: config.Range[time.Duration]{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond},
				},
				ClientIDs: config.Range[uint16]{Min: 0x1200, Max: 0x1200},
				Ports:     config.Range[uint16]{Min: 30500, Max: 30599},
				Expose:    &config.Expose{},
			},
		},
		Services: []config.Service{
			{Interface: "cabin.trip.v1.TripComputer", Instance: "default", Address: "127.0.0.2:50051"},
			{Interface: "cabin.radio.v0.Radio", Instance: "Front Left", Address: "unix:/run/radio.sock"},
		},
		Envoy: config.Envoy{Path: "testdata/bin/envoy", LogLevel: "debug"},
	}
	require.Empty(t, cmp.Diff(want, got, cmpopts.IgnoreTypes(model.Position{}), cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})))
	require.Equal(t, "testdata/node.yaml:14:5", got.Networks[0].Pos.String())
}

func TestLoadDefaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.yaml")
	require.NoError(t, os.WriteFile(path, []byte("name: a\nrole: central\naddress: 10.0.0.1\ncontrol_plane: 10.0.0.1:15010\n"), 0o600))
	n, err := config.Load(path)
	require.NoError(t, err)
	require.Equal(t, config.Ingress{Port: 15001}, n.Ingress)
	require.Equal(t, config.Egress{Address: netip.MustParseAddr("127.0.0.1"), Port: 15000, Socket: "/var/lib/carisma/egress.sock"}, n.Egress)
	require.Equal(t, config.Envoy{Path: "envoy", LogLevel: "warning"}, n.Envoy)
	require.Empty(t, n.Networks)
}

func TestLoadMissingFile(t *testing.T) {
	_, err := config.Load("testdata/none.yaml")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "testdata/none.yaml: no such file or directory")
}

func TestExposeAllows(t *testing.T) {
	require.True(t, (*config.Expose)(nil).Allows("a.v1.A", "x"))
	require.False(t, (&config.Expose{}).Allows("a.v1.A", "x"))
	some := &config.Expose{Services: []config.ExposedService{{Interface: "a.v1.A"}, {Interface: "a.v1.B", Instance: "x"}}}
	require.True(t, some.Allows("a.v1.A", "y"))
	require.True(t, some.Allows("a.v1.B", "x"))
	require.False(t, some.Allows("a.v1.B", "y"))
	require.False(t, some.Allows("a.v1.C", "x"))
}

// What is encoded is read back as it was.
func TestEncode(t *testing.T) {
	want, err := config.Load("testdata/node.yaml")
	require.NoError(t, err)
	data, err := config.Encode(want)
	require.NoError(t, err)
	var got config.Node
	require.NoError(t, config.Decode("again.yaml", data, &got), "%s", data)
	require.Empty(t, cmp.Diff(want, &got, cmpopts.IgnoreTypes(model.Position{}), cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{})))
}
