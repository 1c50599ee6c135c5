//go:build race

package batches_test

const rounds = 50 // of a race between processes; the detector makes each slow
