package e2e_test

import (
	"fmt"

	"carisma.dev/gateway/someip"
	"carisma.dev/gateway/someip/e2e"
)

func Example() {
	config := e2e.Config{Profile: e2e.P04, DataID: 0x0A0B0C0D, MaxDelta: 3}
	protector, err := e2e.NewProtector(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	checker, err := e2e.NewChecker(config)
	if err != nil {
		fmt.Println(err)
		return
	}

	var b []byte
	for session := range uint16(4) {
		m := someip.NewNotification(0x1234, 0x8777, 1, session+1, []byte("data"))
		if b, err = protector.AppendMessage(b[:0], m); err != nil {
			fmt.Println(err)
			return
		}
		if session == 1 {
			continue // lost
		}
		r := checker.CheckMessage(b)
		fmt.Printf("%v, %d lost: %s\n", r.Status, r.Lost, checker.Strip(b[someip.HeaderSize:]))
	}
	b[len(b)-1]++
	fmt.Println(checker.CheckMessage(b).Err)
	// Output:
	// OK, 0 lost: data
	// OK_SOME_LOST, 1 lost: data
	// OK, 0 lost: data
	// byte 24: e2e: checksum does not match
}
