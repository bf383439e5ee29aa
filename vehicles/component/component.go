// Package component is what SOME/IP programs of a vehicle share: where they are
// on the network comes from the environment that the vehicle's runner gives
// them.
package component

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strconv"

	"carisma.dev/gateway/someip/runtime"
)

// Start opens the SOME/IP network that the environment describes:
// CARISMA_ADDRESS, CARISMA_PREFIX_LEN, CARISMA_SD_GROUP, CARISMA_SD_PORT,
// CARISMA_NETWORK and, where the network has a device of its own,
// CARISMA_INTERFACE.
func Start(clientIDs runtime.Range, log *slog.Logger) (*runtime.Stack, *runtime.Network, error) {
	return StartWith(func(c *runtime.NetworkConfig) { c.ClientIDs = clientIDs }, log)
}

// StartWith is Start for programs that need more than a block of client ids: alter
// changes what the environment says.
func StartWith(alter func(*runtime.NetworkConfig), log *slog.Logger) (*runtime.Stack, *runtime.Network, error) {
	network, err := fromEnvironment(os.Getenv)
	if err != nil {
		return nil, nil, err
	}
	alter(&network)
	stack, err := runtime.Start(runtime.Config{Networks: []runtime.NetworkConfig{network}, Logger: log})
	if err != nil {
		return nil, nil, err
	}
	return stack, stack.Network(network.Name), nil
}

func fromEnvironment(getenv func(string) string) (n runtime.NetworkConfig, err error) {
	get := func(key string) string {
		v := getenv(key)
		if v == "" && err == nil {
			err = fmt.Errorf("%s is not set: the program is started by the runner of a vehicle, or with its variables", key)
		}
		return v
	}
	n.Name = get("CARISMA_NETWORK")
	address, bits := get("CARISMA_ADDRESS"), get("CARISMA_PREFIX_LEN")
	group, port := get("CARISMA_SD_GROUP"), get("CARISMA_SD_PORT")
	n.Interface = getenv("CARISMA_INTERFACE")
	if err != nil {
		return n, err
	}
	if n.Address, err = netip.ParsePrefix(address + "/" + bits); err != nil {
		return n, fmt.Errorf("CARISMA_ADDRESS and CARISMA_PREFIX_LEN: %w", err)
	}
	if n.SD.Group, err = netip.ParseAddr(group); err != nil {
		return n, fmt.Errorf("CARISMA_SD_GROUP: %w", err)
	}
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return n, fmt.Errorf("CARISMA_SD_PORT: %w", err)
	}
	n.SD.Port = uint16(p)
	return n, nil
}
