package pgtest

import "syscall"

const (
	memoryRoot   = "/dev/shm"
	memoryNeeded = 4 << 30 // free bytes; the tests use less than 2 GiB
	noExec       = 8       // ST_NOEXEC of statfs: tests build programs and run them
)

// Memory returns a directory of an in-memory file system, for throwaway databases, or false if
// there is none with enough space.
func Memory() (dir string, ok bool) {
	var fs syscall.Statfs_t
	if syscall.Statfs(memoryRoot, &fs) != nil || fs.Flags&noExec != 0 || fs.Bavail*uint64(fs.Bsize) < memoryNeeded {
		return "", false
	}
	return memoryRoot, openToAll(memoryRoot)
}
