//go:build race

package storetest

// Under the race detector SQLite is ten times slower, and a few rounds show it
// all that there is to see; `make test` runs the long tests a second time
// without it.
const (
	walks  = 100
	rounds = 100
)
