//go:build race

package runtime_test

// raced: the race detector makes sync.Pool forget at random.
const raced = true
