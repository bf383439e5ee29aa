package endpoint_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"carisma.dev/gateway/someip/endpoint"
)

// An address that may come late is waited for, by what the kernel tells.
func ExampleLinks_Wait() {
	links, err := endpoint.WatchLinks()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer links.Close()
	cfg := endpoint.UDPConfig{Local: netip.MustParseAddrPort("127.0.11.1:0")}
	for {
		u, err := endpoint.ListenUDP(cfg)
		if missing := (*endpoint.NoAddressError)(nil); errors.As(err, &missing) {
			if err := links.Wait(context.Background(), missing.Addr, cfg.Interface); err != nil {
				fmt.Println(err)
				return
			}
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("bound to", u.LocalAddr().Addr())
		u.Close()
		return
	}
	// Output: bound to 127.0.11.1
}
