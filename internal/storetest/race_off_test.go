//go:build !race

package storetest

// walks is how many sequences the random walk takes.
const walks = 2000
