//go:build unix

package sqlite

import "syscall"

// writable asks the system whether this process may write a file. SQLite does not report that: it
// opens a file without write access for reading, and leaves read-only files beside it.
func writable(path string) bool {
	const write = 2
	return syscall.Access(path, write) == nil
}
