//go:build race

package storetest

// walks is how many sequences the random walk takes. The walk itself is
// sequential, so the race detector, under which SQLite is ten times slower,
// sees all that it can in a few; `make test` runs it a second time without.
const walks = 100
