//go:build !linux

package pgtest

// Memory returns false: this system has no in-memory directory.
func Memory() (dir string, ok bool) { return "", false }
