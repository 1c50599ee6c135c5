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

//go:embed keeper.sh
var keeperScript string

// patience bounds one answer of the keeper. Only a stop takes longer than an
// instant, and a server that needs a minute to stop is a failure to report.
const patience = time.Minute

// errEnded is returned when a server ends by itself while it starts.
var errEnded = errors.New("the server ended while starting")

// A keeper runs one server in one throwaway directory and outlives this
// process just long enough to remove both.
//
// The guarantee: whatever ends this process, SIGKILL included, the server stops
// and the directory goes. The means: a small shell script (keeper.sh) is the
// parent of the server and reads a pipe whose other end only we hold. The
// kernel closes our end when we die, so nothing depends on code of ours that
// would have to run in time. The script runs in a session of its own, so that
// an interrupt from the terminal reaches us and not it.
//
// Rejected: reading postmaster.pid afterwards (a server killed between fork and
// writing the file is missed, and a number may have been reused), and the
// parent-death signal of Linux (it is tied to a thread, and macOS has none).
//
// A keeper is not safe for concurrent use.
type keeper struct {
	dir     string
	end     signals
	cmd     *exec.Cmd
	orders  *os.File
	replies *os.File
	lines   *bufio.Reader
}

// signals are the names of what the keeper sends when the end has come: ask
// first, force after five seconds.
type signals struct{ ask, force string }

// newKeeper makes the directory and starts the script. The server itself waits
// for [keeper.start]. command gets the directory and returns the server's
// command line.
func newKeeper(prefix string, end signals, command func(dir string) []string) (*keeper, error) {
	dir, err := makeDir(prefix)
	if err != nil {
		return nil, err
	}
	args := []string{"-c", keeperScript, "keeper", dir, end.ask, end.force}
	k := &keeper{dir: dir, end: end, cmd: unprivileged(exec.Command("sh", append(args, command(dir)...)...))}
	if err := k.launch(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	return k, nil
}

// makeDir makes the directory, 0700 and owned by the user of the server.
func makeDir(prefix string) (string, error) {
	dir, err := os.MkdirTemp(tempRoot(), prefix+"-")
	if err != nil {
		return "", err
	}
	if err := giveAway(dir); err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
}

func (k *keeper) launch() error {
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
	// Stderr stays unset: were it ours, go test would wait for the script to end.
	k.cmd.Stdin, k.cmd.Stdout = stdin, stdout
	k.orders, k.replies, k.lines = orders, replies, bufio.NewReader(replies)
	if err := k.cmd.Start(); err != nil {
		return errors.Join(err, orders.Close(), replies.Close())
	}
	return nil
}

func (k *keeper) start() error {
	_, err := k.order("start")
	return err
}

// stop sends the signal and returns when the server has ended.
func (k *keeper) stop(signal string) error {
	_, err := k.order("stop " + signal)
	return err
}

// alive takes a moment to answer, so that a loop may call it without a pause.
func (k *keeper) alive() (bool, error) {
	answer, err := k.order("alive")
	return answer == "up", err
}

func (k *keeper) order(line string) (string, error) {
	if _, err := fmt.Fprintln(k.orders, line); err != nil {
		return "", fmt.Errorf("keeper: %s: %w", line, err)
	}
	if err := k.replies.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return "", fmt.Errorf("keeper: %s: %w", line, err)
	}
	answer, err := k.lines.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("keeper: %s: %w", line, err)
	}
	return strings.TrimSpace(answer), nil
}

// closer returns a function that closes the keeper once, from any goroutine.
func closer(k *keeper) func() {
	return sync.OnceFunc(func() { _ = k.close() })
}

// close returns when the server has ended and the directory is gone.
func (k *keeper) close() error {
	err := errors.Join(k.orders.Close(), k.cmd.Wait(), k.replies.Close())
	// The script removes the directory; this is for one that was itself killed.
	return errors.Join(err, os.RemoveAll(k.dir))
}

// logTail returns the end of what the server wrote, for an error message.
func (k *keeper) logTail() string {
	text, err := os.ReadFile(filepath.Join(k.dir, "log"))
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}
