//go:build !race

package batches_test

const rounds = 1000 // of a race between processes
