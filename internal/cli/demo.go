package cli

import (
	"context"
	"os"
	"os/exec"
	"strings"

	"github.com/holdfast-go/holdfast/internal/demo"
)

// demoCallerCommand is a hidden command that the demo starts: one caller in a separate
// process, which the demo can kill.
type demoCallerCommand struct {
	databaseFlags
	Step    string `arg:""`
	Invoice string `arg:""`
	Admin   string `arg:""`
}

// Run runs the caller.
func (c *demoCallerCommand) Run(ctx context.Context, p *program) error {
	db, err := c.databaseFlags.open()
	if err != nil {
		return err
	}
	return demo.Caller{Step: c.Step, Invoice: c.Invoice, Admin: c.Admin}.Run(ctx, db, p.log, os.Stdin, p.stdout)
}

// typed returns what a user types to run this program.
func typed() string {
	if _, err := exec.LookPath("holdfast"); err == nil {
		return "holdfast"
	}
	if strings.Contains(os.Args[0], "go-build") {
		return "go run ./cmd/holdfast"
	}
	return os.Args[0]
}

// demoCallers returns a function that starts caller processes from the executable self, or
// from this program if self is empty. The database URL may contain a password, so it is
// passed in the environment and not in the arguments.
func demoCallers(env map[string]string, db databaseFlags, self string) demo.Callers {
	return func(ctx context.Context, c demo.Caller) (cmd *exec.Cmd, err error) {
		program := self
		if program == "" {
			if program, err = os.Executable(); err != nil {
				return nil, err
			}
		}
		cmd = exec.CommandContext(ctx, program, "demo-caller", "--log-level", "error", c.Step, c.Invoice, c.Admin)
		for name, value := range env {
			if !strings.HasPrefix(name, "HOLDFAST_") {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
		}
		cmd.Env = append(cmd.Env, variable("config")+"="+os.DevNull, variable("db")+"="+db.DB, variable("schema")+"="+db.Schema)
		return cmd, nil
	}
}
