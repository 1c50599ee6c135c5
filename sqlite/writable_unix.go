//go:build unix

package sqlite

import "syscall"

// writable asks the system whether this process may write a file. SQLite does
// not tell: it opens a file that it may not write for reading, and leaves files
// beside it that cannot be written either.
func writable(path string) bool {
	const write = 2
	return syscall.Access(path, write) == nil
}
