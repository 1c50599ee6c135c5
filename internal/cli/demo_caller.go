package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// demoCallerCommand is an admin of the demo in a process of its own, which is
// killed in the middle of its work. It is started by the demo, and by nobody else.
type demoCallerCommand struct {
	databaseFlags
	Step    string `arg:""`
	Invoice string `arg:""`
	Admin   string `arg:""`
}

// Run fires the step, says when it is in the middle of it, and then waits to be
// killed. It ends by itself when whoever started it is gone.
func (c *demoCallerCommand) Run(ctx context.Context, p *program) (err error) {
	ctx, cancel := context.WithCancel(holdfast.InWorkspace(ctx, demoWorkspace))
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	s := newShop()
	middle := func(ctx context.Context) error {
		fmt.Fprintln(p.stdout, c.Step)
		<-ctx.Done()
		return ctx.Err()
	}
	s.charged = middle
	s.meanwhile(c.Invoice, middle)
	db, err := c.databaseFlags.open()
	if err != nil {
		return err
	}
	engine, err := holdfast.Open(ctx, db, holdfast.Config{Log: p.log, NoMigrate: true}, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	_, err = s.invoices.Fire(ctx, engine, c.Invoice, c.Step, "admin", lifecycle.By(c.Admin), lifecycle.Lease(demoLease))
	return err
}

// callers starts such processes.
type callers struct {
	env  map[string]string
	db   databaseFlags
	self string // the program; "" is this one
}

// killed has a process do a step, and kills it in the middle: once it has said that
// it is there. The error is nil if it was killed.
func (c callers) killed(ctx context.Context, step, id, who string) error {
	cmd, err := c.command(ctx, step, id, who)
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
		return fmt.Errorf("the process of %s ended before it was in the middle of %q: %s", who, step, cmp.Or(oneLine(said.String()), cmd.ProcessState.String()))
	}
	return nil
}

// command is this program, as a caller. What may be secret goes by the environment.
func (c callers) command(ctx context.Context, step, id, who string) (cmd *exec.Cmd, err error) {
	self := c.self
	if self == "" {
		if self, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	cmd = exec.CommandContext(ctx, self, "demo-caller", "--log-level", "error", step, id, who)
	for name, value := range c.env {
		if !strings.HasPrefix(name, "HOLDFAST_") {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, variable("config")+"="+os.DevNull, variable("db")+"="+c.db.DB, variable("schema")+"="+c.db.Schema)
	return cmd, nil
}
