// Command pgrun runs a command with a PostgreSQL server for its tests:
//
//	go run ./internal/pgtest/pgrun -- go test ./...
//
// All processes of the command share the one server, which they find through
// HOLDFAST_TEST_POSTGRES_URL. If that is set already, pgrun only runs the command.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/internal/pgtest"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgrun:", err)
	}
	os.Exit(code)
}

// run returns the exit code, which is that of the command once it has started.
func run(args []string) (int, error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return 2, errors.New("usage: pgrun -- command [argument ...]")
	}
	// Signals are caught from here on, so that an interrupt ends the command, or the start, and
	// this process can clean up.
	interrupts := make(chan os.Signal, 4)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	stop, err := provide(interrupts)
	if err != nil {
		return 1, err
	}
	defer stop()
	return execute(args, interrupts)
}

// provide ensures that the environment names a server, and prints which.
func provide(interrupts <-chan os.Signal) (stop func(), err error) {
	ctx, done := untilInterrupt(interrupts)
	defer done()
	if given := os.Getenv(pgtest.EnvURL); given != "" {
		return func() {}, announce(ctx, given, "given by "+pgtest.EnvURL)
	}
	cluster, err := pgtest.Start(ctx)
	if err != nil {
		return nil, err
	}
	stop = func() { _ = cluster.Close() }
	origin := "found on this machine"
	if cluster.Installed() {
		origin = "installed just now"
	}
	if err := announce(ctx, cluster.URL(), origin); err != nil {
		stop()
		return nil, err
	}
	return stop, os.Setenv(pgtest.EnvURL, cluster.URL())
}

// untilInterrupt cancels the context at the first interrupt. After done, later interrupts go to the
// command.
func untilInterrupt(interrupts <-chan os.Signal) (ctx context.Context, done func()) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	go func() {
		select {
		case <-interrupts:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func announce(ctx context.Context, url, origin string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("no PostgreSQL: %w", err)
	}
	defer conn.Close(ctx)
	version := conn.PgConn().ParameterStatus("server_version")
	fmt.Fprintf(os.Stderr, "pgrun: PostgreSQL %s, %s\n", version, origin)
	return nil
}

func execute(args []string, interrupts <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 127, err
	}
	go func() {
		for s := range interrupts {
			_ = cmd.Process.Signal(s) // fails only if it has ended
		}
	}()
	err := cmd.Wait()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return 1, err
	}
	return exitCode(cmd.ProcessState), nil
}

// exitCode follows the shells: 128 plus the signal's number for a command that a signal ended.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
