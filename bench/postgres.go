package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/baseline"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/postgres"
)

// openPostgres makes a database on the server, with a schema for each system.
func openPostgres(ctx context.Context, c config) (*place, error) {
	if !storeWanted(c, "postgres") {
		return nil, nil
	}
	if c.postgres != "" {
		if err := os.Setenv(pgtest.EnvURL, c.postgres); err != nil {
			return nil, err
		}
	}
	url, drop, err := pgtest.Database(ctx, pgtest.Options{})
	if err != nil {
		return nil, err
	}
	p := &place{store: "postgres", close: drop}
	if err := p.openPostgres(ctx, c, url); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func storeWanted(c config, store string) bool {
	for _, w := range workloads {
		if wanted(c, store, w.name) {
			return true
		}
	}
	return false
}

// finally adds to what close does, before all that was added earlier.
func (p *place) finally(f func()) {
	before := p.close
	p.close = func() { f(); before() }
}

// byHand opens the system by hand in a schema, and the one that coalesces there.
func (p *place) byHand(ctx context.Context, c config, url, schema string) (*baseline.Postgres, *baseline.PostgresCoalesced, error) {
	one, err := baseline.OpenPostgres(ctx, url, schema, c.conns)
	if err != nil {
		return nil, nil, err
	}
	p.finally(one.Close)
	all := one.Coalesced(c.writers)
	p.finally(all.Close)
	return one, all, nil
}

func (p *place) openPostgres(ctx context.Context, c config, url string) error {
	hf, err := holdfast.Open(ctx, postgres.URL(url), holdfast.Config{}, threeSteps)
	if err != nil {
		return err
	}
	p.finally(func() { _ = hf.Close() })
	one, seeder, err := p.byHand(ctx, c, url, "baseline")
	if err != nil {
		return err
	}
	_, all, err := p.byHand(ctx, c, url, "baseline_best")
	if err != nil {
		return err
	}
	three, lockedSeeder, err := p.byHand(ctx, c, url, "baseline_locked")
	if err != nil {
		return err
	}
	p.systems = []named{
		{name: ours, system: kernel{hf}, seeder: kernel{hf}},
		{name: sqlOne, system: hand{one}, seeder: hand{seeder}},
		{name: sqlBest, system: best{hand{all}, all}, seeder: hand{all}},
		{name: sqlLocked, system: hand{baseline.PostgresLocked{Postgres: three}}, seeder: hand{lockedSeeder}, only: "append"},
		{name: oursLocked, system: locked{kernel{hf}}, seeder: locked{kernel{hf}}, only: "append"},
	}
	return p.openProbe(ctx, url)
}

// openProbe counts by the server's own counters that are exact at once: the
// next transaction id, which every transaction that writes takes one of, and the
// end of the log. The statistics views lag by seconds.
func (p *place) openProbe(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	p.finally(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	// Statistics come by themselves, but at a moment of the server's choosing:
	// until then plans are guesses, and would be so for one system and not for
	// another.
	p.settle = func(ctx context.Context) error {
		_, err := conn.Exec(ctx, "VACUUM ANALYZE")
		return err
	}
	p.count = func(ctx context.Context) (counters, error) {
		var n counters
		var pids []int32
		err := conn.QueryRow(ctx, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
			(pg_current_wal_insert_lsn() - '0/0')::bigint,
			array(SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid())`).Scan(&n.transactions, &n.wal, &pids)
		for _, pid := range pids {
			n.server += serverTime(pid)
		}
		return n, err
	}
	return nil
}

// serverTime is the CPU time of one process of the server, or zero where it is
// on another machine.
func serverTime(pid int32) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	n, _ := strconv.ParseInt(first, 10, 64)
	return time.Duration(n)
}
