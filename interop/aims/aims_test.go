package aims_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/interop/aims"
)

func TestAims(t *testing.T) {
	var all aims.Aims
	all.AtMost("a time", 2, 2)
	all.AtMost("a longer one", 2.1, 2)
	all.AtLeast("a rate", 0.7, 0.7)
	all.AtLeast("a lower one", 0.6, 0.7)
	all.AtMost("what is no number", math.NaN(), 2)
	var out strings.Builder
	all.WriteMarkdown(&out)
	require.Equal(t, `
| aim | | limit | measured | |
|---|---|---|---|---|
| a time | at most | 2 | 2.00 | met |
| a longer one | at most | 2 | 2.10 | missed |
| a rate | at least | 0.7 | 0.70 | met |
| a lower one | at least | 0.7 | 0.60 | missed |
| what is no number | at most | 2 | NaN | missed |
`, out.String())
}
