package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/sqlite"
)

// How long [holdfast.Engine.Check] takes with many runs is measured apart from the workloads: one run is started and
// executed, its rows are copied under other names until there are as many as wanted, and the check reads them all.

// copier copies the rows of a run.
type copier struct {
	store string
	hf    *holdfast.Engine
	// exec runs a statement in a transaction.
	exec func(ctx context.Context, tx holdfast.Tx, sql string, args ...any) error
	// columns lists the columns of a table, named without prefix.
	columns func(ctx context.Context, tx holdfast.Tx, table string) ([]string, error)
	table   func(name string) string
	numbers string // a query of the numbers above its first argument, up to the second, as n
	newID   string // an expression for the id of an event: as with real ids, consecutive events have close ids
}

// measureChecks measures on both databases.
func measureChecks(ctx context.Context, c config) (all []result, err error) {
	for _, open := range []func(context.Context, config, ...holdfast.Part) (*copier, func(), error){copyPostgres, copySQLite} {
		k, closed, err := open(ctx, c, workflows[threeSteps])
		if err != nil {
			return all, err
		}
		if c.run.MatchString(cellName(k.store, checkOf, 1)) {
			var r result
			if r, err = k.measure(ctx, c.checkRuns); err == nil {
				fmt.Printf("\n%s: %d runs in %.2f s, %.1f times as long as a tenth of them\n", cellName(k.store, checkOf, 1), r.Rows, r.Seconds, r.Growth)
				all = append(all, r)
			}
		}
		closed()
		if err != nil {
			return all, fmt.Errorf("%s: %w", k.store, err)
		}
	}
	return all, nil
}

func (k *copier) measure(ctx context.Context, runs int) (r result, err error) {
	stop := background(ctx, k.hf)
	defer stop()
	model, _, err := workflows[threeSteps].Start(ctx, k.hf, amount, run.Key("model"))
	if err == nil {
		model, err = run.Await(ctx, k.hf, model.ID)
	}
	if err != nil {
		return r, err
	}
	few, err := k.checked(ctx, model.ID, 0, max(runs/10, 1))
	if err != nil {
		return r, err
	}
	many, err := k.checked(ctx, model.ID, max(runs/10, 1), runs)
	return result{Store: k.store, Workload: checkOf, Clients: 1, System: ours, Rows: runs, Seconds: round(many, 100), Growth: round(many/few, 100)}, err
}

// checked copies the run model under the numbers above from, up to to, and returns how many seconds [holdfast.Engine.Check] takes.
func (k *copier) checked(ctx context.Context, model string, from, to int) (float64, error) {
	const page = 10_000
	for ; from < to; from += page {
		if err := k.copy(ctx, model, from, min(from+page, to)); err != nil {
			return 0, err
		}
	}
	if k.store == "postgres" {
		err := k.hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error { return k.exec(ctx, tx, "ANALYZE") })
		if err != nil {
			return 0, err
		}
	}
	start := clock.Now()
	report, err := k.hf.Check(ctx)
	took := clock.Since(start).Seconds()
	if err == nil && (!report.Clean() || report.Checked["runs"] != int64(to)+1) {
		err = fmt.Errorf("the check of %d copies found violations or did not check every run: %s %+v", to, report, report.Checked)
	}
	return took, err
}

func (k *copier) copy(ctx context.Context, model string, from, to int) error {
	name := "'" + model + "-' || g.n"
	renamed := map[string]map[string]string{
		"run":     {"id": name, "key": "'copy-' || g.n"},
		"step":    {"run": name},
		"history": {"id": k.newID, "stream": "'$run/" + model + "-' || g.n"},
	}
	where := map[string]string{"run": "id = '" + model + "'", "step": "run = '" + model + "'", "history": "stream = '$run/" + model + "'"}
	return k.hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		for _, table := range []string{"run", "step", "history"} {
			if err := k.duplicate(ctx, tx, table, where[table], renamed[table], from, to); err != nil {
				return err
			}
		}
		return nil
	})
}

// duplicate copies the rows of a table that match, once for each number above from, up to to. The columns of renamed have other
// values.
func (k *copier) duplicate(ctx context.Context, tx holdfast.Tx, table, where string, renamed map[string]string, from, to int) error {
	columns, err := k.columns(ctx, tx, table)
	if err != nil {
		return err
	}
	values := make([]string, len(columns))
	for i, column := range columns {
		values[i] = "t." + column
		if as, ok := renamed[column]; ok {
			values[i] = as
		}
	}
	err = k.exec(ctx, tx, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s t, (%s) g WHERE %s", k.table(table),
		strings.Join(columns, ", "), strings.Join(values, ", "), k.table(table), k.numbers, where), from, to)
	if err != nil {
		return fmt.Errorf("copy %s: %w", table, err)
	}
	return nil
}

var postgresCopier = copier{
	store: "postgres", numbers: "SELECT generate_series($1::int + 1, $2::int) AS n", newID: "(lpad(to_hex(g.n), 24, '0') || lpad(to_hex(t.version), 8, '0'))::uuid",
	table: func(name string) string { return "holdfast." + name },
	exec: func(ctx context.Context, tx holdfast.Tx, sql string, args ...any) error {
		_, err := postgres.Raw(tx).Exec(ctx, sql, args...)
		return err
	},
	columns: func(ctx context.Context, tx holdfast.Tx, table string) (all []string, err error) {
		err = postgres.Raw(tx).QueryRow(ctx, "SELECT array_agg(column_name::text) FROM information_schema.columns WHERE table_schema = 'holdfast' AND table_name = $1", table).Scan(&all)
		return all, err
	},
}

var sqliteCopier = copier{
	store: "sqlite", newID: "unhex(printf('%024x%08x', g.n, t.version))",
	numbers: "WITH RECURSIVE s(n) AS (SELECT ?1 + 1 UNION ALL SELECT n + 1 FROM s WHERE n < ?2) SELECT n FROM s",
	table:   func(name string) string { return "holdfast_" + name },
	exec: func(ctx context.Context, tx holdfast.Tx, sql string, args ...any) error {
		_, err := sqlite.Raw(tx).ExecContext(ctx, sql, args...)
		return err
	},
	columns: func(ctx context.Context, tx holdfast.Tx, table string) (all []string, err error) {
		rows, err := sqlite.Raw(tx).QueryContext(ctx, "SELECT name FROM pragma_table_info(?1)", "holdfast_"+table)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return nil, err
			}
			all = append(all, name)
		}
		return all, rows.Err()
	},
}
