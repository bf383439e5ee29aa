//go:build !race

package transcode_test

const raceDetector = false
