package e2e_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/someip/e2e"
	"carisma.dev/gateway/someip/internal/corpus"
)

func number(t *testing.T, s string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(s, 0, 32)
	require.NoError(t, err)
	return uint32(n)
}

// The vectors of another implementation.
// E2E-3 to E2E-8.
func TestCorpusVectors(t *testing.T) {
	var file struct {
		Vectors []struct {
			Profile    string
			Op         string
			DataID     string `json:"data_id"`
			DataIDList string `json:"data_id_list"`
			Mode       string `json:"data_id_mode"`
			Offset     int
			Input      string
			Increment  bool `json:"increment_counter"`
			Output     string
			Valid      bool
		}
	}
	require.NoError(t, json.Unmarshal(corpus.Read(t, "vectors/autosar-e2e/e2e-profiles.json"), &file))
	require.NotEmpty(t, file.Vectors)
	byName := map[string]e2e.Profile{}
	for _, p := range profiles {
		byName[p.String()] = p
	}
	modes := map[string]e2e.DataIDMode{"BOTH": e2e.Both, "ALT": e2e.Alt, "LOW": e2e.Low, "NIBBLE": e2e.Nibble}
	for _, v := range file.Vectors {
		t.Run(v.Profile+"/"+v.Op+"/"+v.Input, func(t *testing.T) {
			config := e2e.Config{Profile: byName[v.Profile], DataIDMode: modes[v.Mode], Offset: v.Offset}
			if v.DataID != "" {
				config.DataID = number(t, v.DataID)
			}
			copy(config.DataIDList[:], unhex(t, v.DataIDList))
			data := unhex(t, v.Input)

			if v.Op == "check" {
				checker, err := e2e.NewChecker(config)
				require.NoError(t, err)
				require.Equal(t, v.Valid, checker.Check(data).Usable())
				return
			}
			protector, err := e2e.NewProtector(config)
			require.NoError(t, err)
			counter := counterIn(config, data)
			if v.Increment {
				counter++
			}
			require.NoError(t, protector.SetCounter(counter))
			require.NoError(t, protector.Protect(data))
			require.Equal(t, unhex(t, v.Output), data)
		})
	}
}

// counterIn reads the counter where data has it.
func counterIn(c e2e.Config, data []byte) uint32 {
	h := data[c.Offset:]
	switch c.Profile {
	case e2e.P04, e2e.P44:
		return uint32(h[2])<<8 | uint32(h[3])
	case e2e.P05:
		return uint32(h[2])
	case e2e.P06:
		return uint32(h[4])
	case e2e.P07:
		return uint32(h[12])<<24 | uint32(h[13])<<16 | uint32(h[14])<<8 | uint32(h[15])
	default:
		return uint32(h[1] & 0x0F)
	}
}

// Events that vsomeip protected (cases 107 and 113: instance 1 in the data id, and
// the Request ID protected).
// E2E-11.
func TestCorpusVsomeipP04(t *testing.T) {
	var file struct {
		Upper    string   `json:"someip_header_upper_8_bytes"`
		Payloads []string `json:"event_payloads"`
	}
	require.NoError(t, json.Unmarshal(corpus.Read(t, "vectors/vsomeip/vsomeip-e2e-p04.json"), &file))
	config, err := e2e.Config{Profile: e2e.P04, DataID: 0x2D, MaxDelta: 1}.ForVsomeip(1)
	require.NoError(t, err)
	checker, err := e2e.NewChecker(config)
	require.NoError(t, err)
	require.NotEmpty(t, file.Payloads)
	for i, payload := range file.Payloads {
		msg := append(unhex(t, "d0258001 00000050"), unhex(t, file.Upper)...)
		msg = append(msg, unhex(t, payload)...)
		require.Equal(t, e2e.Result{Status: e2e.OK, Counter: 0x8F81 + uint32(i)}, checker.CheckMessage(msg))
		require.Len(t, checker.Strip(msg[16:]), 60)
	}
}
