package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
)

type lifecyclesCommand struct {
	List    lifecyclesList    `cmd:"" help:"List the lifecycles of a workspace."`
	Put     lifecyclesPut     `cmd:"" help:"Put a config into force."`
	Diagram lifecyclesDiagram `cmd:"" help:"Draw a lifecycle that is in force."`
}

type lifecyclesList struct {
	doorFlags
	pageFlags
}

// Help is shown by kong.
func (lifecyclesList) Help() string { return `    holdfast lifecycles list --db sqlite:holdfast.db` }

// Run lists lifecycles.
func (c *lifecyclesList) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListLifecyclesPage(ctx, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"NAME", "STATUSES"}}
		for _, x := range l.Items {
			t.add(x.Name, strings.Join(x.Statuses, ","))
		}
		return d.showList(raw, t, l.Next)
	})
}

type lifecyclesPut struct {
	doorFlags
	onceFlags
	File   string `arg:"" help:"The config, in JSON or YAML."`
	DryRun bool   `setting:"-" help:"Judge it, and put nothing into force."`
}

// Help is shown by kong.
func (lifecyclesPut) Help() string {
	return `Its handlers are declared first, with "holdfast handlers put". It is put under the
name of its workflow:

    holdfast lifecycles put billing.yaml --db sqlite:holdfast.db
    holdfast lifecycles put billing.yaml --dry-run --url http://127.0.0.1:7070`
}

// Run puts a config.
func (c *lifecyclesPut) Run(ctx context.Context, p *program, k *kong.Context) error {
	data, err := readConfig(c.File)
	if err != nil {
		return err
	}
	config, violations := lifecycles.Parse(data)
	if len(violations) > 0 {
		return fmt.Errorf("%s (%s in all, see \"holdfast lint\")", lintLine(c.File, "", violations[0]), plural(len(violations), "violation"))
	}
	if !json.Valid(data) {
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := d.PutLifecycle(ctx, config.Workflow, data, c.DryRun, c.options(&raw)...)
		if err != nil {
			return err
		}
		for _, w := range x.Warnings {
			fmt.Fprintf(d.stderr, "warning: %s: %s (%s)\n", w.Path, w.Message, w.Rule)
		}
		if c.DryRun {
			return d.show(raw, facts("name", x.Name, "in force", "no"))
		}
		return d.show(raw, facts("name", x.Name, "revision", number64(x.Revision)))
	})
}

type lifecyclesDiagram struct {
	doorFlags
	Name   string `arg:"" help:"The lifecycle."`
	Format string `enum:"svg,mermaid" default:"svg" placeholder:"FORMAT" help:"What to draw it in: svg or mermaid."`
}

// Help is shown by kong.
func (lifecyclesDiagram) Help() string {
	return `    holdfast lifecycles diagram billing --url http://127.0.0.1:7070 > billing.svg
    holdfast lifecycles diagram billing --format mermaid --db sqlite:holdfast.db`
}

// Run draws a lifecycle.
func (c *lifecyclesDiagram) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		x, err := d.DrawLifecycle(ctx, c.Name, c.Format, client.Raw(&raw))
		if err != nil {
			return err
		}
		if d.output == "json" {
			return d.show(raw, nil)
		}
		_, err = io.WriteString(d.stdout, x.Diagram)
		return err
	})
}
