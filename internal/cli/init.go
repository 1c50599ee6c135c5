package cli

import (
	"fmt"

	"github.com/holdfast-go/holdfast/internal/starter"
)

type initCommand struct {
	Dir      string `arg:"" optional:"" default:"." help:"Folder of the project, which must be empty or not exist. Default: the current folder."`
	Template string `setting:"-" enum:"go,typescript" default:"go" placeholder:"NAME" help:"Project to write: go (a program with its own tables) or typescript (a worker). Default: go."`
	Checkout string `setting:"-" placeholder:"FOLDER" help:"Use a checkout of Holdfast's repository instead of a release."`
}

// nextSteps are what to run in the folder of a new project, by its template.
var nextSteps = map[string]string{
	"go":         "go mod tidy\n  go test ./...\n  go run .",
	"typescript": "npm install\n  npm test",
}

// Run writes the project.
func (c *initCommand) Run(p *program) error {
	err := starter.Project{Template: c.Template, Dir: c.Dir, Version: build().Version, Checkout: c.Checkout}.Write()
	if err != nil {
		return err
	}
	steps := nextSteps[c.Template]
	switch {
	case c.Checkout != "":
	case c.Template == "typescript": // the package is not on npm yet
		steps = "npm install /path/to/a/checkout/of/holdfast/sdk/typescript\n  " + steps
	case !starter.Released(build().Version):
		steps = "go mod edit -replace github.com/holdfast-go/holdfast=/path/to/a/checkout/of/holdfast\n  " + steps
	}
	if c.Dir != "." {
		steps = fmt.Sprintf("cd %q\n  %s", c.Dir, steps)
	}
	_, err = fmt.Fprintf(p.stdout, "Wrote a project. README.md describes it. Next:\n\n  %s\n", steps)
	return err
}
