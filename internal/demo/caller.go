package demo

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// Caller is an admin of the demo in a separate process, which is killed during its work.
type Caller struct {
	Step, Invoice, Admin string
}

// Run fires the step, prints the step to out while the action executes, and then waits to be
// killed. It stops when in reaches its end, because its parent process has exited then.
func (c Caller) Run(ctx context.Context, db holdfast.Database, log *slog.Logger, in io.Reader, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(holdfast.InWorkspace(ctx, Workspace))
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	s := newShop()
	middle := func(ctx context.Context) error {
		fmt.Fprintln(out, c.Step)
		<-ctx.Done()
		return ctx.Err()
	}
	s.charged = middle
	s.meanwhile(c.Invoice, middle)
	engine, err := holdfast.Open(ctx, db, holdfast.Config{Log: log, NoMigrate: true}, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	_, err = s.invoices.Fire(ctx, engine, c.Invoice, c.Step, "admin", lifecycle.By(c.Admin), lifecycle.Lease(lease))
	return err
}

// Callers returns the command of a process that runs a [Caller] on the database of the demo.
type Callers func(context.Context, Caller) (*exec.Cmd, error)

// Killed starts a process that fires a step, and kills it while the action executes. The
// error is nil if the process was killed.
func (c Callers) Killed(ctx context.Context, step, id, admin string) error {
	cmd, err := c(ctx, Caller{step, id, admin})
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill() // the process may have exited already
	_ = cmd.Wait()         // ProcessState has the result
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || line != step+"\n" || cmd.ProcessState.Success():
		return fmt.Errorf("the process that acted for %s was not killed during the action of step %q: %s", admin, step, cmp.Or(strings.Join(strings.Fields(stderr.String()), " "), cmd.ProcessState.String()))
	}
	return nil
}
