package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
)

type lifecyclesCommand struct {
	List    lifecyclesList    `cmd:"" help:"List the lifecycles of a workspace."`
	Show    lifecyclesShow    `cmd:"" help:"Show the origin, the janitor and the lint warnings of a lifecycle."`
	Counts  lifecyclesCounts  `cmd:"" help:"Count the entities of a lifecycle by status."`
	Put     lifecyclesPut     `cmd:"" help:"Publish a lifecycle config."`
	Diagram lifecyclesDiagram `cmd:"" help:"Draw a published lifecycle."`
}

type lifecyclesList struct {
	pageFlags
}

func (c *lifecyclesList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListLifecyclesPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"NAME", "STATUSES"}}
	for _, x := range l.Items {
		t.add(x.Name, strings.Join(x.Statuses, ","))
	}
	return d.showList(t, l.Next, err)
}

type lifecyclesPut struct {
	idempotencyFlags
	File   string `arg:"" help:"Lifecycle config, in JSON or YAML."`
	DryRun bool   `setting:"-" help:"Validate the config without publishing it."`
}

func (c *lifecyclesPut) Run(ctx context.Context, to *target) error {
	data, err := readConfig(c.File)
	if err != nil {
		return err
	}
	config, violations := lifecycleconfig.Parse(data)
	if err := firstOf(c.File, violations); err != nil {
		return err
	}
	if !json.Valid(data) {
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
	}
	d, err := to.open(ctx)
	if err != nil {
		return err
	}
	x, err := d.PutLifecycle(ctx, config.Workflow, data, dryRun(c.DryRun, c.options(d))...)
	if err != nil {
		return err
	}
	for _, w := range x.Warnings {
		fmt.Fprintf(d.stderr, "warning: %s: %s (%s)\n", w.Path, w.Message, w.Rule)
	}
	if c.DryRun {
		return d.show(facts("name", x.Name, "published", "no"), nil)
	}
	return d.show(facts("name", x.Name, "revision", number64(x.Revision)), nil)
}

type lifecyclesDiagram struct {
	targetFlags
	Name   string `arg:"" help:"Lifecycle name."`
	Format string `enum:"svg,mermaid,layout" default:"svg" placeholder:"FORMAT" help:"Output format: svg, mermaid, or layout (coordinates as JSON)."`
}

func (c *lifecyclesDiagram) Run(ctx context.Context, d *connection) error {
	return d.showDiagram(d.GetLifecycleDiagram(ctx, c.Name, c.Format, d.raw()))
}

type lifecyclesShow struct {
	targetFlags
	Name string `arg:"" help:"Lifecycle name."`
}

type lifecyclesCounts struct {
	targetFlags
	Name string `arg:"" help:"Lifecycle name."`
}

func (c *lifecyclesCounts) Run(ctx context.Context, d *connection) error {
	n, err := d.CountEntities(ctx, c.Name, d.raw())
	t := &table{heads: []string{"STATUS", "COUNT"}}
	counted(t, n.Counts, n.Capped)
	return d.show(t, err)
}

func (c *lifecyclesShow) Run(ctx context.Context, d *connection) error {
	x, err := d.GetLifecycle(ctx, c.Name, d.raw())
	if err != nil {
		return err
	}
	stuck := (time.Duration(x.Janitor.StuckAfterMs) * time.Millisecond).String()
	if err := d.show(facts("name", x.Name, "revision", number64(x.Revision), "origin", x.Origin, "statuses", strings.Join(x.Statuses, ","),
		"janitor", x.Janitor.Kind, "stuck after", stuck), nil); err != nil {
		return err
	}
	for _, w := range x.Warnings {
		fmt.Fprintf(d.stderr, "warning: %s: %s (%s)\n", w.Path, w.Message, w.Rule)
	}
	return nil
}
