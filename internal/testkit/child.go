package testkit

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Child is a child process that reads commands from stdin and prints results to stdout, one
// per line.
type Child struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // its output; closed when the process has exited
	ended error       // result of the process; valid once lines is closed
}

// childTimeout is how long [Child.Next] waits for a line.
const childTimeout = time.Minute

// Self returns a command that runs only the test function run of this test binary, with
// additional environment variables ("name=value"), which tell it that it is a child.
func Self(run string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^"+run+"$")
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// StartChild starts a child that runs the test function run, with an additional environment
// variable, and waits until it prints "ready".
func StartChild(t testing.TB, run, variable, value string) *Child {
	t.Helper()
	c := Start(t, Self(run, variable+"="+value))
	c.Expect("ready")
	return c
}

// Start starts a child and kills it when the test ends.
func Start(t testing.TB, cmd *exec.Cmd) *Child {
	t.Helper()
	c, err := TryStart(t, cmd)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TryStart is like [Start], but returns the error if the process cannot be started.
func TryStart(t testing.TB, cmd *exec.Cmd) (*Child, error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &Child{t: t, cmd: cmd, in: in, lines: make(chan string, 4096)}
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
		c.ended = cmd.Wait()
	}()
	t.Cleanup(c.Kill)
	return c, nil
}

// Kill kills the child and waits until it has exited.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill()
	for range c.lines {
		continue
	}
}

// Wait waits until the child exits and returns the rest of its output. It fails the test if the
// child fails.
func (c *Child) Wait() (rest string) {
	c.t.Helper()
	for line := range c.lines {
		rest += line + "\n"
	}
	if c.ended != nil {
		c.t.Errorf("the child failed: %v: %s", c.ended, rest)
	}
	return rest
}

// Signal sends the child a signal.
func (c *Child) Signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// Send sends a line to the child.
func (c *Child) Send(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

// Lines returns the output of the child. The channel is closed when the child has exited.
func (c *Child) Lines() <-chan string { return c.lines }

// Next returns the next line of the child.
func (c *Child) Next() string {
	c.t.Helper()
	timeout := time.NewTimer(childTimeout)
	defer timeout.Stop()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("the child has exited: %v", c.ended)
		}
		return line
	case <-timeout.C:
		c.t.Fatal("the child printed nothing for a minute")
	}
	return ""
}

// Expect waits until the child has printed these lines, in any order. Any other line fails the
// test.
func (c *Child) Expect(lines ...string) {
	c.t.Helper()
	left := make(map[string]bool)
	for _, l := range lines {
		left[l] = true
	}
	for len(left) > 0 {
		line := c.Next()
		if !left[line] {
			c.t.Fatalf("the child printed %q, want one of %v", line, left)
		}
		delete(left, line)
	}
}

// ExpectPrefix returns the rest of the next line after the prefix. A line without the prefix
// fails the test.
func (c *Child) ExpectPrefix(prefix string) string {
	c.t.Helper()
	line := c.Next()
	rest, ok := strings.CutPrefix(line, prefix)
	if !ok {
		c.t.Fatalf("the child printed %q, want the prefix %q", line, prefix)
	}
	return strings.TrimSpace(rest)
}
