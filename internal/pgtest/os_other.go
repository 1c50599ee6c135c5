//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package pgtest

import (
	"errors"
	"os"
	"os/exec"
)

// supported reports whether this system can run a cluster of its own. Here it cannot, because it
// lacks sh and flock; a server given by the environment works.
const supported = false

func unprivileged(cmd *exec.Cmd) *exec.Cmd { return cmd }

func chown(string) error { return nil }

func tempRoot() string { return os.TempDir() }

func lockFile(string) (func(), error) { return nil, errors.ErrUnsupported }
