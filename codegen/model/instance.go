package model

import (
	"fmt"
	"strconv"
	"strings"
)

func instanceNumberName(id uint16) string { return fmt.Sprintf("0x%04x", id) }

func parseInstanceNumberName(name string) (uint16, bool) {
	digits, ok := strings.CutPrefix(name, "0x")
	if !ok || len(digits) != 4 {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 16, 16)
	return uint16(id), err == nil && id != 0 && id != 0xFFFF
}
