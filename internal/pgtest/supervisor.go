package pgtest

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

//go:embed supervisor.sh
var supervisorScript string

// patience limits one response of the supervisor. Only a stop takes time, and a server that needs a
// minute to stop is a failure to report.
const patience = time.Minute

// errEnded is returned if a server exits while it starts.
var errEnded = errors.New("the server ended while starting")

// A supervisor runs one server in one throwaway directory and outlives this process just long
// enough to remove both.
//
// The guarantee: however this process ends, SIGKILL included, the server stops and the directory is
// removed. The means: a small shell script (supervisor.sh) is the parent of the server and reads a
// pipe whose other end only this process has. The kernel closes our end when the process ends, so
// no code of ours has to run. The script runs in a session of its own, so that an interrupt from
// the terminal reaches this process only.
//
// Rejected: reading postmaster.pid afterwards (it misses a server killed between fork and writing
// the file, and the process id may have been reused), and Linux's parent-death signal (it is tied
// to a thread, and macOS has none).
//
// A supervisor is not safe for concurrent use.
type supervisor struct {
	dir     string
	end     signals
	cmd     *exec.Cmd
	orders  *os.File
	replies *os.File
	lines   *bufio.Reader
}

// signals are the names of the signals that the supervisor sends at the end: graceful first, force after
// five seconds.
type signals struct{ graceful, force string }

// newSupervisor creates a directory in parent and starts the script. The server itself waits for
// [supervisor.start]. command gets the directory and returns the server's command line.
func newSupervisor(parent, prefix string, end signals, command func(dir string) []string) (*supervisor, error) {
	dir, err := makeDir(parent, prefix)
	if err != nil {
		return nil, err
	}
	args := []string{"-c", supervisorScript, "supervisor", dir, end.graceful, end.force}
	k := &supervisor{dir: dir, end: end, cmd: unprivileged(exec.Command("sh", append(args, command(dir)...)...))}
	if err := k.launch(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	return k, nil
}

// makeDir creates the directory with mode 0700, owned by the user of the server.
func makeDir(parent, prefix string) (string, error) {
	dir, err := os.MkdirTemp(parent, prefix+"-")
	if err != nil {
		return "", err
	}
	if err := chown(dir); err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
}

func (k *supervisor) launch() error {
	stdin, orders, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	replies, stdout, err := os.Pipe()
	if err != nil {
		orders.Close()
		return err
	}
	defer stdout.Close()
	// Stderr stays unset: with ours, go test would wait for the script to end.
	k.cmd.Stdin, k.cmd.Stdout = stdin, stdout
	k.orders, k.replies, k.lines = orders, replies, bufio.NewReader(replies)
	if err := k.cmd.Start(); err != nil {
		return errors.Join(err, orders.Close(), replies.Close())
	}
	return nil
}

func (k *supervisor) start() error {
	_, err := k.send("start")
	return err
}

// stop sends the signal and returns when the server has ended.
func (k *supervisor) stop(signal string) error {
	_, err := k.send("stop " + signal)
	return err
}

// alive takes a moment to respond, so that a loop may call it without a pause.
func (k *supervisor) alive() (bool, error) {
	answer, err := k.send("alive")
	return answer == "up", err
}

func (k *supervisor) send(line string) (string, error) {
	if _, err := fmt.Fprintln(k.orders, line); err != nil {
		return "", fmt.Errorf("supervisor: %s: %w", line, err)
	}
	if err := k.replies.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", fmt.Errorf("supervisor: %s: %w", line, err)
	}
	answer, err := k.lines.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("supervisor: %s: %w", line, err)
	}
	return strings.TrimSpace(answer), nil
}

// closer returns a function that closes the supervisor once, from any goroutine.
func closer(k *supervisor) func() {
	return sync.OnceFunc(func() { _ = k.close() })
}

// close returns when the server has ended and the directory is removed.
func (k *supervisor) close() error {
	err := errors.Join(k.orders.Close(), k.cmd.Wait(), k.replies.Close())
	// The script removes the directory; this covers a script that was itself killed.
	return errors.Join(err, os.RemoveAll(k.dir))
}

// logTail returns the end of the server's log, for an error message.
func (k *supervisor) logTail() string {
	text, err := os.ReadFile(filepath.Join(k.dir, "log"))
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
