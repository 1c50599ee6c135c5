package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/goccy/go-yaml"

	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

type lintCommand struct {
	targetFlags
	Files    []string `arg:"" name:"file" help:"Lifecycle configs and workflow definitions, in JSON or YAML."`
	Handlers string   `setting:"-" placeholder:"FILE" help:"File that lists the handlers of the program. Default: handlers.yaml, if it exists."`
}

// linted has the violations and warnings of one file.
type linted struct {
	File       string                      `json:"file"`
	Violations []lifecycleconfig.Violation `json:"violations"`
	Warnings   []lifecycleconfig.Violation `json:"warnings"`
}

// Run validates the files.
func (c *lintCommand) Run(ctx context.Context, to *target) error {
	known, err := c.handlers(ctx, to)
	if err != nil {
		return err
	}
	all, count := make([]linted, 0, len(c.Files)), 0
	for _, file := range c.Files {
		data, err := readConfig(file)
		if err != nil {
			return err
		}
		l := linted{File: file, Violations: []lifecycleconfig.Violation{}, Warnings: []lifecycleconfig.Violation{}}
		violations, warnings := validate(data, known)
		l.Violations, l.Warnings = append(l.Violations, violations...), append(l.Warnings, warnings...)
		all, count = append(all, l), count+len(violations)
	}
	if err := to.showLinted(all, c.Output); err != nil {
		return err
	}
	if count > 0 {
		return fmt.Errorf("found %s", plural(count, "violation"))
	}
	return nil
}

// validate validates a lifecycle config or a workflow definition, and the handlers that it names if they are known.
func validate(data []byte, known knownHandlers) (violations, warnings []lifecycleconfig.Violation) {
	if isDefinition(data) {
		_, violations, warnings = workflow.Check(data, workflow.Known{Handlers: known})
		return violations, warnings
	}
	_, violations, warnings = lifecycleconfig.Check(data, known.lifecycle())
	return violations, warnings
}

// lifecycleField and definitionField match fields that only one of the two has, at the
// beginning of a line or after a brace or comma. They detect the type of a file that does
// not parse.
var (
	lifecycleField  = regexp.MustCompile(`(?m)(^|[{,])\s*"?(workflow|owning_module|status_types|initial_status|entity_table)"?\s*:`)
	definitionField = regexp.MustCompile(`(?m)(^|[{,])\s*"?(version|retentionMs|name)"?\s*:`)
)

// isDefinition reports whether data is a workflow definition and not a lifecycle config.
func isDefinition(data []byte) bool {
	var fields map[string]any
	if yaml.Unmarshal(data, &fields) == nil {
		for _, own := range []string{"workflow", "owning_module", "status_types", "initial_status", "entity_table"} {
			if _, ok := fields[own]; ok {
				return false
			}
		}
		_, named := fields["name"]
		_, versioned := fields["version"]
		return named || versioned
	}
	return !lifecycleField.Match(data) && definitionField.Match(data)
}

// readConfig reads a config. It stops one byte beyond the size limit, which the parser then
// reports.
func readConfig(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the config: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, strictjson.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the config: %w", err)
	}
	return data, nil
}

func (p *program) showLinted(all []linted, output string) error {
	if output == "json" {
		return p.showJSON(map[string]any{"files": all})
	}
	for _, l := range all {
		for _, v := range l.Violations {
			if _, err := fmt.Fprintln(p.stdout, lintLine(l.File, "", v)); err != nil {
				return err
			}
		}
		for _, v := range l.Warnings {
			if _, err := fmt.Fprintln(p.stdout, lintLine(l.File, "warning ", v)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lintLine formats a violation as file:line:column, which editors can jump to.
func lintLine(file, label string, v lifecycleconfig.Violation) string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", file, v.Line, v.Column, oneLine(label+v.Rule+" "+v.Path), oneLine(v.Message))
}

// firstOf returns an error with the first violation, or nil if there is none.
func firstOf(file string, violations []lifecycleconfig.Violation) error {
	if len(violations) == 0 {
		return nil
	}
	return fmt.Errorf("%s (%s in total; see \"holdfast lint\")", lintLine(file, "", violations[0]), plural(len(violations), "violation"))
}

// plural formats a count with its noun.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
