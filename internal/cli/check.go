package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
)

type checkCommand struct {
	databaseFlags
	Output string `short:"o" enum:"table,json" default:"table" placeholder:"FORMAT" help:"Output format: table or json."`
}

// Run checks the database and lists the violations.
func (c *checkCommand) Run(ctx context.Context, p *program) error {
	report, err := c.check(ctx, p)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		err = p.showJSON(report)
	} else {
		err = p.showReport(report)
	}
	if err == nil && !report.Clean() {
		err = fmt.Errorf("%s found: copy the database before you repair or restore it",
			plural(len(report.Violations)+int(report.Unlisted), "violation"))
	}
	return err
}

// check opens the database without migrating it: a check must not change the schema.
func (c *checkCommand) check(ctx context.Context, p *program) (r holdfast.Report, err error) {
	if path, ok := c.sqlitePath(); ok && isMissing(path) {
		return r, fault.New(fault.NotFound, "database %s does not exist: choose another database with --db", path)
	}
	db, err := c.open()
	if err != nil {
		return r, err
	}
	hf, err := holdfast.Open(ctx, db, holdfast.Config{Log: p.log, NoMigrate: true})
	if err != nil {
		return r, err
	}
	r, err = hf.Check(ctx)
	return r, errors.Join(err, hf.Close())
}

func (p *program) showReport(r holdfast.Report) error {
	t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(r.Checked)) {
		fmt.Fprintf(t, "%s\t%d\n", name, r.Checked[name])
	}
	fmt.Fprintf(t, "overdue leases\t%d\n", r.OverdueLeases)
	fmt.Fprintf(t, "violations\t%d\n", int64(len(r.Violations))+r.Unlisted)
	if err := t.Flush(); err != nil || r.Clean() {
		return err
	}
	fmt.Fprintln(p.stdout)
	fmt.Fprintln(t, "INVARIANT\tWORKSPACE\tSUBJECT\tWHAT")
	for _, v := range r.Violations {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", v.Invariant, v.Workspace, oneLine(v.Subject), v.Message)
	}
	if r.Unlisted > 0 {
		fmt.Fprintf(t, "\t\t\tand %d more\n", r.Unlisted)
	}
	return t.Flush()
}
