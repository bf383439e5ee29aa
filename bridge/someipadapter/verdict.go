package someipadapter

import (
	"carisma.dev/gateway/codegen/protos/carismav1"
	"carisma.dev/gateway/someip/e2e"
)

// e2eStatus is the verdict on an event as its watchers see it. A message that was
// checked always has one, so NO_NEW_DATA stands for one that is not protected.
func e2eStatus(r e2e.Result) carismav1.E2EStatus {
	switch r.Status {
	case e2e.OK:
		return carismav1.E2EStatus_E2E_OK
	case e2e.OKSomeLost:
		return carismav1.E2EStatus_E2E_OK_SOME_LOST
	case e2e.Repeated:
		return carismav1.E2EStatus_E2E_REPEATED
	case e2e.WrongSequence:
		return carismav1.E2EStatus_E2E_WRONG_SEQUENCE
	case e2e.Error:
		return carismav1.E2EStatus_E2E_ERROR
	default:
		return carismav1.E2EStatus_E2E_STATUS_UNSPECIFIED
	}
}
