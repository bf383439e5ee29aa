//go:build race

package transcode_test

// raceDetector says that pools drop what they hold now and then.
const raceDetector = true
