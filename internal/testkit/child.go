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

// Child is a process of its own that does what it is told, a line each, and says what becomes
// of it.
type Child struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string // what it says; closed when it is dead
	ended error       // of the process; valid once lines is closed
}

// childPatience is how long a child may say nothing that somebody waits for.
const childPatience = time.Minute

// Self is the test binary as a command that runs the test function run alone, with more
// variables ("name=value") in its environment, which tell it what it is for.
func Self(run string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^"+run+"$")
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// StartChild starts a child that runs the function run, with a variable in its environment
// that tells it what it is for, and waits until it says that it is ready.
func StartChild(t testing.TB, run, variable, value string) *Child {
	t.Helper()
	c := Start(t, Self(run, variable+"="+value))
	c.Expect("ready")
	return c
}

// Start starts a child, which is killed when the test ends.
func Start(t testing.TB, cmd *exec.Cmd) *Child {
	t.Helper()
	c, err := TryStart(t, cmd)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TryStart starts a child where the system may refuse to.
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

// Kill ends the child at once, and waits until it is dead.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill()
	for range c.lines {
		continue
	}
}

// Wait waits until the child has ended well, and returns all that it has still said.
func (c *Child) Wait() (rest string) {
	c.t.Helper()
	for line := range c.lines {
		rest += line + "\n"
	}
	if c.ended != nil {
		c.t.Errorf("the child: %v: %s", c.ended, rest)
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

// Tell tells the child something.
func (c *Child) Tell(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

// Lines is all that the child says; it is closed when the child is dead.
func (c *Child) Lines() <-chan string { return c.lines }

// Next is the next thing that the child says.
func (c *Child) Next() string {
	c.t.Helper()
	patience := time.NewTimer(childPatience)
	defer patience.Stop()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("the child is dead: %v", c.ended)
		}
		return line
	case <-patience.C:
		c.t.Fatal("the child is silent")
	}
	return ""
}

// Expect waits until the child has said these lines, in any order, and nothing else.
func (c *Child) Expect(lines ...string) {
	c.t.Helper()
	left := make(map[string]bool)
	for _, l := range lines {
		left[l] = true
	}
	for len(left) > 0 {
		line := c.Next()
		if !left[line] {
			c.t.Fatalf("the child said %q; awaited was %v", line, left)
		}
		delete(left, line)
	}
}

// Hears returns what follows a beginning in the next line, which must have it.
func (c *Child) Hears(begin string) string {
	c.t.Helper()
	line := c.Next()
	rest, ok := strings.CutPrefix(line, begin)
	if !ok {
		c.t.Fatalf("the child said %q where %q was awaited", line, begin)
	}
	return strings.TrimSpace(rest)
}
