//go:build !race

package storetest

const (
	walks  = 2000 // sequences of the random walk
	rounds = 1000 // of the race for holds
)
