//go:build unix

package postgres_test

import (
	"os"
	"syscall"
	"testing"
)

// chownLike gives a file to the owner of another, if permitted.
func chownLike(t *testing.T, path string, like os.FileInfo) {
	t.Helper()
	owner, ok := like.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return
	}
	if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
}
