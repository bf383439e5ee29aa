package model_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/model"
)

func TestEnumHolds(t *testing.T) {
	unsigned := []model.Literal{{Name: "A", Value: 0}}
	signed := []model.Literal{{Name: "A", Value: -1}}
	for _, test := range []struct {
		width    uint8
		literals []model.Literal
		value    int64
		holds    bool
	}{
		{1, unsigned, 255, true},
		{1, unsigned, 256, false},
		{1, unsigned, -1, false},
		{1, signed, 127, true},
		{1, signed, 128, false},
		{1, signed, -128, true},
		{1, signed, -129, false},
		{4, unsigned, math.MaxUint32, true},
		{4, unsigned, math.MaxUint32 + 1, false},
		{4, signed, math.MinInt32, true},
		{4, signed, math.MaxInt32 + 1, false},
		{8, unsigned, math.MaxInt64, true},
		{8, unsigned, -1, false},
		{8, signed, math.MinInt64, true},
	} {
		e := &model.Enum{Width: test.width, Literals: test.literals}
		require.Equal(t, test.holds, e.Holds(test.value), "%+v", test)
	}
}
