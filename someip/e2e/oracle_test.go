package e2e_test

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/e2e"
)

// oracle protects each case of the list with the Python package autosar-e2e, the
// counter being in the data, and prints the bytes.
const oracle = `
import json, sys
from e2e import p01, p02, p04, p05, p06, p07, p11
modes1 = [p01.E2E_P01_DATAID_BOTH, p01.E2E_P01_DATAID_ALT, p01.E2E_P01_DATAID_LOW, p01.E2E_P01_DATAID_NIBBLE]
modes11 = {0: p11.E2E_P11_DATAID_BOTH, 3: p11.E2E_P11_DATAID_NIBBLE}
for c in json.load(sys.stdin):
    data, more = bytearray.fromhex(c["data"]), dict(increment_counter=False)
    id, p, offset = c["id"], c["profile"], c["offset"]
    if p == 1: p01.e2e_p01_protect(data, id, data_id_mode=modes1[c["mode"]], offset=offset, **more)
    if p == 2: p02.e2e_p02_protect(data, bytes.fromhex(c["list"]), **more)
    if p == 4: p04.e2e_p04_protect(data, id, offset=offset, **more)
    if p == 5: p05.e2e_p05_protect(data, id, offset=offset, **more)
    if p == 6: p06.e2e_p06_protect(data, id, offset=offset, **more)
    if p == 7: p07.e2e_p07_protect(data, id, offset=offset, **more)
    if p == 11: p11.e2e_p11_protect(data, id, data_id_mode=modes11[c["mode"]], offset=offset, **more)
    print(data.hex())
`

// counterAt is the first and the last byte of the counter in the header.
var counterAt = map[e2e.Profile][2]int{
	e2e.P01: {1, 1}, e2e.P02: {1, 1}, e2e.P04: {2, 3}, e2e.P05: {2, 2}, e2e.P06: {4, 4}, e2e.P07: {12, 15}, e2e.P11: {1, 1},
}

type oracleCase struct {
	Profile e2e.Profile    `json:"profile"`
	ID      uint32         `json:"id"`
	Mode    e2e.DataIDMode `json:"mode"`
	List    string         `json:"list"`
	Offset  int            `json:"offset"`
	Data    string         `json:"data"`
}

// Random data, data ids, counters and offsets give the bytes that a foreign
// implementation makes of them.
// E2E-3 to E2E-8.
func TestOracle(t *testing.T) {
	python := cmp.Or(os.Getenv("CARISMA_PYTHON"), "python3")
	if out, err := exec.CommandContext(t.Context(), python, "-c", "import e2e.p11").CombinedOutput(); err != nil {
		t.Skipf("no Python with the package autosar-e2e (set CARISMA_PYTHON): %v %s", err, bytes.TrimSpace(out))
	}
	random := rand.New(rand.NewPCG(1, 2))
	var cases []oracleCase
	var want []string
	for i := range 900 {
		config := e2e.Config{Profile: profiles[i%7], DataID: uint32(random.IntN(0x1000))} // those it has
		switch config.Profile {
		case e2e.P01:
			config.DataIDMode = e2e.DataIDMode(random.IntN(4))
		case e2e.P11:
			config.DataIDMode = []e2e.DataIDMode{e2e.Both, e2e.Nibble}[random.IntN(2)]
		case e2e.P02:
			config.DataID = 0
			for i := range config.DataIDList {
				config.DataIDList[i] = byte(random.Uint32())
			}
		default:
		}
		if config.Profile != e2e.P02 { // it has no offset
			config.Offset = random.IntN(20)
		}
		data := make([]byte, config.Offset+config.Profile.HeaderSize()+random.IntN(100))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		if config.Profile.HeaderSize() == 2 {
			data[config.Offset+1] &= 0x0F // see TestNeighbourNibble
		}
		protector, err := e2e.NewProtector(config)
		require.NoError(t, err)
		require.NoError(t, protector.SetCounter(random.Uint32N(maxCounter[config.Profile])))
		require.NoError(t, protector.Protect(data))
		want = append(want, hex.EncodeToString(data))
		header := data[config.Offset:][:config.Profile.HeaderSize()]
		for i := range header { // the other side writes these anew
			if i < counterAt[config.Profile][0] || i > counterAt[config.Profile][1] {
				header[i] ^= 0xFF
			}
		}
		cases = append(cases, oracleCase{
			Profile: config.Profile, ID: config.DataID, Mode: config.DataIDMode, Offset: config.Offset,
			List: hex.EncodeToString(config.DataIDList[:]), Data: hex.EncodeToString(data),
		})
	}
	input, err := json.Marshal(cases)
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), python, "-c", oracle)
	run.Stdin, run.Stderr = bytes.NewReader(input), os.Stderr
	output, err := run.Output()
	require.NoError(t, err)
	for i, got := range strings.Fields(string(output)) {
		require.Equal(t, got, want[i], "%+v", cases[i])
	}
	require.Len(t, strings.Fields(string(output)), len(cases))
}
