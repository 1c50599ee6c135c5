// Package cli implements the holdfast command line.
//
// A setting has the same name everywhere: the flag --log-level overrides the variable
// HOLDFAST_LOG_LEVEL, which overrides log-level in holdfast.yaml. A flag with the tag setting:"-"
// applies to one invocation: neither a variable nor the file can set it.
//
// Exit codes: 0 success, 1 failure or refusal, 2 wrong usage, 3 server or database
// unreachable. An error is one line on stderr. Logs go to stderr too, so that stdout has
// the output of the command only.
//
// Each command is a struct of its flags. Most commands call the HTTP API of a server, or the
// same API in this process (see [targetFlags]). The Run method of such a command takes an open
// connection, or the target if it validates flags before the connection is opened. That of the
// others (serve, migrate and so on) takes the program. Commands are documented by the help tags of the
// fields that name them, and by help.md.
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

// Main runs the command that args name and returns the exit code. The first SIGINT or
// SIGTERM asks the command to stop; the second exits the process at once.
func Main(args, environ []string, stdout, stderr io.Writer) int {
	ctx, stop := untilSignal(context.Background(), os.Exit)
	defer stop()
	return newProgram(environ, stdout, stderr).run(ctx, args)
}

// program is one invocation of the command line.
type program struct {
	env            map[string]string
	stdout, stderr io.Writer
	log            *slog.Logger // discards until the flags are parsed
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

// untilSignal returns a context that is cancelled by the first SIGINT or SIGTERM. The second
// signal calls exit. The returned function stops the signal handling.
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
