package vehicles_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/vehicles"
)

func TestLoadCabin(t *testing.T) {
	v, err := vehicles.Load("cabin")
	require.NoError(t, err)
	require.Equal(t, "cabin", v.Name)
	require.Equal(t, "center", v.Central().Name)
	require.Equal(t, "backbone", v.Backbone().Name)
	require.Len(t, v.HPCs(), 2)
	require.Equal(t, "10.77.1.2", v.Host("climate-ecu").Addresses["rear-ecu"].String())
	require.EqualValues(t, 0x1100, v.Host("rear").Node.Networks[0].ClientIDs.Min)
	require.True(t, v.Component("cluster").Manual)
	require.Nil(t, v.Component("nothing"))
}

// Each mistake is reported with its place and what is allowed, and nothing else
// is reported.
func TestMistakes(t *testing.T) {
	data, err := os.ReadFile("cabin/vehicle.yaml")
	require.NoError(t, err)
	good := string(data)
	for _, c := range []struct{ name, from, to, want string }{
		{"unknown key", "scenario: scenario", "scenari: scenario", `:7:1: `},
		{"unknown network", "backbone: 10.77.0.1", "backbon: 10.77.0.1", `there is no network "backbon"`},
		{"outside the subnet", "{backbone: 10.77.0.1}", "{backbone: 10.78.0.1}", `10.78.0.1 is not in the network "backbone"; allowed: an address in 10.77.0.0/24`},
		{"address twice", "{rear-ecu: 10.77.1.3}", "{rear-ecu: 10.77.1.2}", `10.77.1.2 is the address of "climate-ecu"`},
		{"two central", "role: satellite", "role: central", `2 hosts are central; allowed: one host with role central`},
		{"bad role", "role: satellite", "role: satelite", `did you mean "satellite"?`},
		{"no such host", "host: cluster-ecu", "host: cluster-eco", `there is no host "cluster-eco"`},
		{"no sd", "network: rear-ecu\n    command: [cabin-cluster]", "network: backbone\n    command: [cabin-cluster]", `the host "cluster-ecu" has no address on a network "backbone"`},
		{"empty command", "command: [cabin-climate]", "command: []", "the command is empty"},
		{"subnet", "subnet: 10.77.1.0/24", "subnet: 10.77.1.7/24", "allowed: 10.77.1.0/24"},
		{"no subnet", "subnet: 10.77.1.0/24", "subnet: 10.77.1.0/44", `"10.77.1.0/44" is not an address with the length of its subnet`},
		{
			"client ids twice", "          ports: 30600-30699\n",
			"          ports: 30600-30699\n        - name: rear-ecu\n          client_ids: 0x11f0-0x12ff\n",
			`4592-4863 overlaps with 4352-4607 of "rear"`,
		},
		{"component twice", "- name: cluster\n", "- name: climate-ecu\n", `"climate-ecu" is the name of another component`},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(good, c.from), "the case must change one place")
			dir := t.TempDir()
			path := filepath.Join(dir, vehicles.FileName)
			require.NoError(t, os.WriteFile(path, []byte(strings.Replace(good, c.from, c.to, 1)), 0o600))
			_, err := vehicles.Load(dir)
			require.ErrorContains(t, err, c.want)
			require.Len(t, regexp.MustCompile(`vehicle\.yaml:\d+:\d+: `).FindAllString(err.Error(), -1), 1, "%v", err)
		})
	}
}
