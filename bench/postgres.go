package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
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

// startServer provides the PostgreSQL server of all measurements: the given one or, with the durability
// that PostgreSQL has by default, a throwaway one. It returns the settings that figures depend on.
func startServer(ctx context.Context, c config) (stop func(), env map[string]string, err error) {
	stop = func() {}
	switch {
	case c.postgres != "":
		err = os.Setenv(pgtest.EnvURL, c.postgres)
	case os.Getenv(pgtest.EnvURL) == "":
		var cluster *pgtest.Cluster
		if cluster, err = pgtest.StartDurable(ctx, c.pgdir); err != nil {
			return nil, nil, err
		}
		stop = func() { _ = cluster.Close() }
		err = os.Setenv(pgtest.EnvURL, cluster.URL())
	}
	if err == nil {
		env, err = serverSettings(ctx, os.Getenv(pgtest.EnvURL))
	}
	if err != nil {
		stop()
	}
	return stop, env, err
}

func serverSettings(ctx context.Context, url string) (map[string]string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	env := make(map[string]string)
	for _, name := range []string{"server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "data_directory"} {
		var value string
		if err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
			return nil, err
		}
		env[name] = value
	}
	env["data_directory"] = fileSystem(env["data_directory"])
	return env, nil
}

// fileSystem says whether a directory of this machine is in memory, where a flush to disk costs nothing.
func fileSystem(dir string) string {
	var fs syscall.Statfs_t
	const tmpfs = 0x01021994
	switch err := syscall.Statfs(dir, &fs); {
	case err != nil:
		return "unknown"
	case fs.Type == tmpfs:
		return "in memory"
	}
	return "on disk"
}

// byHand opens the hand-written SQL in a schema: with one statement per call, and with statements for groups of calls.
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

// openOurs opens Holdfast with the parts that all workloads need.
func (p *place) openOurs(ctx context.Context, k *holdfastSystem) (err error) {
	if k.hf, err = k.open(ctx, invoices, workflows[oneStep], workflows[threeSteps], workflows[threeBehind]); err == nil {
		p.finally(func() { _ = k.hf.Close() })
	}
	return err
}

func (p *place) openPostgres(ctx context.Context, c config, url string) error {
	mine := holdfastSystem{nodes: true, open: func(ctx context.Context, parts ...holdfast.Part) (*holdfast.Engine, error) {
		return holdfast.Open(ctx, postgres.URL(url), holdfast.Config{}, parts...)
	}}
	if err := p.openOurs(ctx, &mine); err != nil {
		return err
	}
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
		{name: ours, system: mine, seeder: mine},
		{name: sqlOne, system: sqlSystem{one}, seeder: sqlSystem{seeder}},
		{name: sqlBest, system: bestSystem{sqlSystem{all}, all}, seeder: sqlSystem{all}},
		{name: sqlSwap, system: swapSystem{sqlSystem{one}}, seeder: sqlSystem{one}, only: "hot-row"},
		{name: sqlLocked, system: sqlSystem{baseline.PostgresLocked{Postgres: three}}, seeder: sqlSystem{lockedSeeder}, only: "append"},
		{name: oursLocked, system: lockedSystem{mine}, seeder: lockedSystem{mine}, only: "append"},
	}
	p.addPeers(ctx, c, url, peerDBOS, peerRiver)
	return p.openProbe(ctx, url)
}

// openProbe counts with counters of the server that are exact at any time: the
// next transaction id, of which each transaction that writes takes one, and the
// end of the log. The statistics views lag by seconds.
func (p *place) openProbe(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	p.finally(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	// The server also collects statistics by itself, but at a time that it chooses:
	// until then plans are guesses, perhaps for one system and not for another.
	p.analyze = func(ctx context.Context) error {
		_, err := conn.Exec(ctx, "VACUUM ANALYZE")
		return err
	}
	var server time.Duration
	used := make(map[int32]time.Duration) // by process id
	p.count = func(ctx context.Context) (counters, error) {
		var n counters
		var pids []int32
		err := conn.QueryRow(ctx, `SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
			(pg_current_wal_insert_lsn() - '0/0')::bigint,
			array(SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid())`).Scan(&n.transactions, &n.wal, &pids)
		for _, pid := range pids {
			now := serverTime(pid)
			server += max(now-used[pid], 0)
			used[pid] = now
		}
		n.server = server
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
