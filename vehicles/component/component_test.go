package component

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFromEnvironment(t *testing.T) {
	good := map[string]string{
		"CARISMA_NETWORK": "body", "CARISMA_ADDRESS": "10.77.1.2", "CARISMA_PREFIX_LEN": "24",
		"CARISMA_SD_GROUP": "224.244.77.1", "CARISMA_SD_PORT": "30490", "CARISMA_INTERFACE": "eth0",
	}
	with := func(key, value string) func(string) string {
		return func(k string) string {
			if k == key {
				return value
			}
			return good[k]
		}
	}
	n, err := fromEnvironment(with("", ""))
	require.NoError(t, err)
	require.Equal(t, "10.77.1.2/24", n.Address.String())
	require.Equal(t, "224.244.77.1", n.SD.Group.String())
	require.EqualValues(t, 30490, n.SD.Port)
	require.Equal(t, "eth0", n.Interface)
	for key, value := range map[string]string{
		"CARISMA_ADDRESS": "", "CARISMA_PREFIX_LEN": "99", "CARISMA_SD_GROUP": "group", "CARISMA_SD_PORT": "70000",
	} {
		_, err := fromEnvironment(with(key, value))
		require.ErrorContains(t, err, key)
	}
}
