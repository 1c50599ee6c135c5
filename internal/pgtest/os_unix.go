//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// supported reports whether this system can run a cluster of its own.
const supported = true

// account is the user that runs the servers if this process is root: PostgreSQL and PgBouncer both
// refuse to run as root. It is nil otherwise.
//
// It is looked up at the first use and not before, because installing the package creates the user
// postgres.
var account = sync.OnceValues(func() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return credentialOf(u)
		}
	}
	return nil, fmt.Errorf("root cannot run PostgreSQL, and neither user postgres nor nobody exists to run it")
})

func credentialOf(u *user.User) (*syscall.Credential, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("user %s: %w", u.Username, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// unprivileged makes the command run as [account], in a session of its own and without the PG
// variables of our environment, which would affect the server. Nor does it get our home folder: a
// standby looks there for certificates, and could not enter it.
func unprivileged(cmd *exec.Cmd) *exec.Cmd {
	who, err := account()
	if err != nil {
		cmd.Err = err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: who}
	cmd.Dir = "/"
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "PG") && !strings.HasPrefix(pair, "HOME=") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	return cmd
}

// chown makes [account] the owner of a file.
func chown(path string) error {
	who, err := account()
	if who == nil || err != nil {
		return err
	}
	return os.Chown(path, int(who.Uid), int(who.Gid))
}

// tempRoot returns the parent of throwaway directories: in memory if there is space, else the usual
// place, unless this process is root and the place is private, where the server's user could
// neither enter nor clean up.
func tempRoot() string {
	if dir, ok := Memory(); ok {
		return dir
	}
	dir := os.TempDir()
	if os.Geteuid() != 0 || openToAll(dir) {
		return dir
	}
	return "/tmp"
}

func openToAll(dir string) bool {
	need := os.FileMode(0o007)
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&need != need {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir, need = parent, 0o001
	}
}

// lockFile takes a lock across all processes of this machine until unlock is called or the process
// ends. The file stays: removing it would let two processes lock two files of the same name.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; err == syscall.EINTR; {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
