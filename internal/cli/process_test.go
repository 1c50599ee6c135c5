package cli

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func scriptContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 5*time.Minute)
}

// process is a program that runs in the background of a script.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *lines
	ended          chan struct{} // closed after the program has exited and was waited for
}

func startProcess(ts *testscript.TestScript, name string, args ...string) (*process, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "TMPDIR", "GORACE", "HOLDFAST_DB", "HOLDFAST_LISTEN", "HOLDFAST_LOG_LEVEL"} {
		if value := ts.Getenv(name); value != "" {
			p.cmd.Env = append(p.cmd.Env, name+"="+value)
		}
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	errs, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	p.stdout, p.stderr = newLines(out), newLines(errs)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.collect()
	return p, nil
}

// collect reads the output of the program, then waits for it.
func (p *process) collect() {
	var both sync.WaitGroup
	both.Go(p.stdout.read)
	both.Go(p.stderr.read)
	both.Wait()
	_ = p.cmd.Wait() // the exit code is in ProcessState
	close(p.ended)
}

func (p *process) wait() int {
	<-p.ended
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// lines has the output of a program and can wait for more.
type lines struct {
	from io.Reader

	mu   sync.Mutex
	more *sync.Cond
	all  []string
	done bool
}

func newLines(from io.Reader) *lines {
	l := &lines{from: from}
	l.more = sync.NewCond(&l.mu)
	return l
}

func (l *lines) read() {
	s := bufio.NewScanner(l.from)
	for s.Scan() {
		l.add(s.Text(), false)
	}
	l.add("", true)
}

func (l *lines) add(line string, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done = done; !done {
		l.all = append(l.all, line)
	}
	l.more.Broadcast()
}

// await waits for a line that contains the text and returns it. It returns false if the
// program exits without one.
func (l *lines) await(text string) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for seen := 0; ; {
		for ; seen < len(l.all); seen++ {
			if strings.Contains(l.all[seen], text) {
				return l.all[seen], true
			}
		}
		if l.done {
			return "", false
		}
		l.more.Wait()
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, line := range l.all {
		b.WriteString(line + "\n")
	}
	return b.String()
}
