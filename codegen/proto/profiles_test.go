package proto

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"carisma.dev/gateway/codegen/protos/optionsv1"
	"carisma.dev/gateway/someip/e2e"
)

// What the options allow of an E2E profile is what the stack takes: the model may not
// know the stack, so that both have the limits.
func TestProfilesAreThoseOfTheStack(t *testing.T) {
	t.Parallel()
	require.Len(t, e2eProfiles, len(optionsv1.E2EProfile_name)-1, "all but unspecified")
	for profile, p := range e2eProfiles {
		cfg := e2e.Config{Profile: e2e.Profile(profile), DataID: p.maxDataID, MaxDelta: uint32(p.counter - 1)}
		require.NoError(t, cfg.Validate(), profile)
		require.Equal(t, cfg.Profile.String(), profile.String())
		if p.maxDataID < math.MaxUint32 {
			above := cfg
			above.DataID++
			require.ErrorContains(t, above.Validate(), "DataID", profile)
		}
		if p.counter <= math.MaxUint32 {
			above := cfg
			above.MaxDelta++
			require.ErrorContains(t, above.Validate(), "MaxDelta", profile)
		}
	}
}
