package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/mesh/config"
)

func TestExposeSOMEIP(t *testing.T) {
	t.Parallel()
	e := &config.Expose{SOMEIP: []config.ExposedSOMEIP{
		{Network: "rear", Service: 0x6001, Instance: 1, As: config.SOMEIPIDs{Service: 0x7001, Instance: 2}},
		{Network: "rear", Service: 0x6001},
		{Network: "rear", Service: 0x6002, As: config.SOMEIPIDs{Service: 0x7002}},
	}}
	for _, c := range []struct {
		network           string
		service, instance uint16
		want              config.SOMEIPIDs
		ok                bool
	}{
		{"rear", 0x6001, 1, config.SOMEIPIDs{Service: 0x7001, Instance: 2}, true},
		{"rear", 0x6001, 9, config.SOMEIPIDs{Service: 0x6001, Instance: 9}, true},
		{"rear", 0x6002, 9, config.SOMEIPIDs{Service: 0x7002, Instance: 9}, true},
		{"rear", 0x6003, 1, config.SOMEIPIDs{}, false},
		{"front", 0x6001, 1, config.SOMEIPIDs{}, false},
	} {
		ids, ok := e.IDs(c.network, c.service, c.instance)
		require.Equal(t, c.ok, ok)
		require.Equal(t, c.want, ids)
	}
	_, ok := (*config.Expose)(nil).IDs("rear", 0x6001, 1)
	require.False(t, ok)

	// Such rules leave the gRPC services as they are, unless these are listed.
	require.True(t, e.Allows("a.v1.A", "x"))
	e.Services = []config.ExposedService{}
	require.False(t, e.Allows("a.v1.A", "x"))
}

func TestExposeSOMEIPMistakes(t *testing.T) {
	t.Parallel()
	const node = `name: a
role: central
address: 10.0.0.1
control_plane: 10.0.0.1:15010
networks:
  - name: body
    address: 10.0.1.1/24
    client_ids: 1-9
    expose: {someip: [
      RULES
    ]}
`
	for _, c := range []struct{ rules, want string }{
		{"{network: body, service: 1}", `n.yaml:10:17: networks[0].expose.someip[0].network: what comes from network body is not offered there again`},
		{"{network: rear, service: 1, as: {instance: 2}}", `every instance would become 0x0002; allowed: instance beside network and service`},
		{"{network: rear, service: 0}", `allowed: 1 to 0xfffe`},
		{"{network: rear}", `service id there, such as 0x6001`},
		{
			"{network: rear, service: 1, instance: 1},\n{network: rear, service: 2, instance: 1, as: {service: 1}}",
			`0x0001.0x0001 is also what the rule on line 10 gives`,
		},
	} {
		var n config.Node
		require.ErrorContains(t, config.Decode("n.yaml", []byte(strings.Replace(node, "RULES", c.rules, 1)), &n), c.want)
	}
}
