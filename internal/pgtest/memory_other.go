//go:build !linux

package pgtest

// Memory returns a folder of files that are kept in memory: here there is none.
func Memory() (dir string, ok bool) { return "", false }
