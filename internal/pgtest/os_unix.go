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

// supported says whether this system can run a cluster of its own.
const supported = true

// account is who runs the servers when we are root: PostgreSQL and PgBouncer
// both refuse to run as root. It is nil when we are not root.
//
// It is looked up at the first use and not before, because installing the
// package is what creates the user postgres.
var account = sync.OnceValues(func() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return credentialOf(u)
		}
	}
	return nil, fmt.Errorf("root cannot run PostgreSQL, and there is no user postgres or nobody to run it as")
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

// unprivileged makes the command run as [account], in a session of its own and
// without the PG variables of our environment, which the server would obey.
func unprivileged(cmd *exec.Cmd) *exec.Cmd {
	who, err := account()
	if err != nil {
		cmd.Err = err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: who}
	cmd.Dir = "/"
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "PG") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	return cmd
}

// giveAway makes [account] the owner of a file.
func giveAway(path string) error {
	who, err := account()
	if who == nil || err != nil {
		return err
	}
	return os.Chown(path, int(who.Uid), int(who.Gid))
}

// tempRoot is where directories are made: in memory if there is room, else the usual
// place, unless we are root and it is a private one, where the server's user could
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

// lockFile holds a lock over all processes of this machine until unlock is
// called or the process ends. The file stays: removing it would let two
// processes lock two files of the same name.
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
