package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// errCannotInstall is returned if this process may not install packages.
var errCannotInstall = errors.New("cannot be installed automatically: this process is not root on a system with apt-get")

// Install installs a Debian package. Concurrent processes wait for each other, and those that
// waited find it present.
func Install(ctx context.Context, name string, present func() bool) error {
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return errCannotInstall
	}
	unlock, err := lockFile(filepath.Join(os.TempDir(), "holdfast-apt.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if present() {
		return nil
	}
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	return aptGet(ctx, "install", "-y", "--no-install-recommends", name)
}

// Command returns the path of a command of the test's machine. If the command is missing, it installs the Debian package that
// has it.
func Command(ctx context.Context, command, name string) (string, error) {
	path, err := exec.LookPath(command)
	if err == nil {
		return path, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	failed := Install(ctx, name, func() bool { _, err := exec.LookPath(command); return err == nil })
	if path, err = exec.LookPath(command); err != nil {
		return "", errors.Join(failed, err)
	}
	return path, nil
}

func aptGet(ctx context.Context, args ...string) error {
	args = append([]string{"-q", "-o", "DPkg::Lock::Timeout=120"}, args...)
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	// The run level keeps an old init system from starting the service; a started service does no
	// harm.
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", args[3], err, lastLine(output))
	}
	return nil
}

func lastLine(output []byte) string {
	text := strings.TrimSpace(string(output))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
