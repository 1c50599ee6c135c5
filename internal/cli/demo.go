package cli

import (
	"context"
	"os"
	"os/exec"
	"strings"

	"github.com/holdfast-go/holdfast/internal/demo"
)

// demoCallerCommand is an admin of the demo in a process of its own. It is started by the
// demo, and by nobody else.
type demoCallerCommand struct {
	databaseFlags
	Step    string `arg:""`
	Invoice string `arg:""`
	Admin   string `arg:""`
}

// Run is the admin.
func (c *demoCallerCommand) Run(ctx context.Context, p *program) error {
	db, err := c.databaseFlags.open()
	if err != nil {
		return err
	}
	return demo.Caller{Step: c.Step, Invoice: c.Invoice, Admin: c.Admin}.Run(ctx, db, p.log, os.Stdin, p.stdout)
}

// demoCallers start such processes, of this program or, if it is named, of another. What may be
// secret goes by the environment.
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
