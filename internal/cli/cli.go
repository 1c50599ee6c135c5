// Package cli is the command line: it reads what a person asked for, puts the
// parts together and runs them.
//
// A setting has one name. The flag --log-level, the variable HOLDFAST_LOG_LEVEL
// and the key log-level of holdfast.yaml are the same, and the first of them
// that is given counts.
//
// The exit code is 0 when all went well, 1 when something failed or was refused, 2
// when what was asked for cannot be right, and 3 when a server or a database does not
// answer. An error is one line on stderr. The logs go there too, so that stdout has
// nothing but what was asked for.
//
// A verb goes through one door (see doorFlags): the HTTP API of a server, or the same
// API in this process. It is a struct of its flags. Its Run is given the door, open, or the
// target if it has something to check before that is opened. What it does stands in the help
// of the field that names it, and in help.md.
package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Main runs the command that args name and returns the process's exit code. The
// first SIGINT or SIGTERM asks the command to come to an end, the second ends the
// process at once.
func Main(args, environ []string, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal(context.Background(), os.Exit)
	defer stop()
	return newProgram(environ, stdout, stderr).run(ctx, args)
}

// program is one run of the command line.
type program struct {
	env            map[string]string
	stdout, stderr io.Writer
	log            *slog.Logger // set once the flags are read
}

func newProgram(environ []string, stdout, stderr io.Writer) *program {
	p := &program{env: make(map[string]string), stdout: stdout, stderr: stderr, log: slog.New(slog.DiscardHandler)}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			p.env[name] = value
		}
	}
	return p
}

func (p *program) run(ctx context.Context, args []string) int {
	err := p.command(ctx, args)
	if err == nil || errors.Is(err, errHelped) {
		return 0
	}
	p.report(err)
	return exitCode(err)
}

// untilSignal returns a context that ends with the first signal to stop. At the
// second, exit is called. The returned function ends the watch.
func untilSignal(ctx context.Context, exit func(int)) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for _, act := range []func(){cancel, func() { exit(1) }} {
			select {
			case <-got:
				act()
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(done)
		<-ended
		cancel()
	}
}
