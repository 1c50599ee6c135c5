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

// Caller is an admin of the demo in a process of its own, which is killed in the middle of
// its work.
type Caller struct {
	Step, Invoice, Admin string
}

// Run fires the step, says so on out when it is in the middle of it, and then waits to be
// killed. It ends by itself when in does: whoever started it is gone.
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

// Callers makes the command of a process that runs a [Caller] on the demo's database.
type Callers func(context.Context, Caller) (*exec.Cmd, error)

// Killed has a process do a step, and kills it in the middle: once it has said that
// it is there. The error is nil if it was killed.
func (c Callers) Killed(ctx context.Context, step, id, who string) error {
	cmd, err := c(ctx, Caller{step, id, who})
	if err != nil {
		return err
	}
	var said bytes.Buffer
	cmd.Stderr = &said
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
	_ = cmd.Process.Kill() // it may have ended by itself
	_ = cmd.Wait()         // its state says how
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil || line != step+"\n" || cmd.ProcessState.Success():
		return fmt.Errorf("the process of %s ended before it was in the middle of %q: %s", who, step, cmp.Or(strings.Join(strings.Fields(said.String()), " "), cmd.ProcessState.String()))
	}
	return nil
}
