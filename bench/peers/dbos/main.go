// Command dbos runs workflows of DBOS for the benchmark of Holdfast, as DBOS's documentation
// recommends: registered workflows whose steps are checkpointed, started under a workflow id and
// awaited by their handle. On PostgreSQL it has DBOS's defaults. On SQLite it has its settings except
// synchronous, which is FULL as in Holdfast: with the default, NORMAL, a power failure can lose
// commits that were acknowledged.
//
//	go run . -db postgres://…    # or sqlite:FILE; see package peer for the protocol
package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite"

	"github.com/holdfast-go/holdfast/bench/peers/peer"
)

func main() {
	db := flag.String("db", "", "the database: postgres://… or sqlite:FILE")
	flag.Parse()
	if err := serve(*db); err != nil {
		fmt.Fprintln(os.Stderr, "dbos:", err)
		os.Exit(1)
	}
}

type invoice struct {
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
}

type output struct {
	OK bool `json:"ok"`
}

func step(context.Context) (output, error) { return output{true}, nil }

func one(ctx dbos.Context, _ invoice) (output, error) {
	return dbos.RunAsStep(ctx, step, dbos.WithStepName("s1"))
}

func three(ctx dbos.Context, _ invoice) (out output, err error) {
	for _, name := range []string{"s1", "s2", "s3"} {
		if out, err = dbos.RunAsStep(ctx, step, dbos.WithStepName(name)); err != nil {
			return out, err
		}
	}
	return out, nil
}

func serve(db string) error {
	config := dbos.Config{AppName: "bench", DatabaseURL: db, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))}
	if path, ok := strings.CutPrefix(db, "sqlite:"); ok {
		pool, err := durable(path)
		if err != nil {
			return err
		}
		defer pool.Close()
		config.DatabaseURL, config.SQLiteSystemDB = "", pool
	}
	ctx, err := dbos.NewContext(context.Background(), config)
	if err != nil {
		return err
	}
	dbos.RegisterWorkflow(ctx, one)
	dbos.RegisterWorkflow(ctx, three)
	if err := dbos.Launch(ctx); err != nil {
		return err
	}
	defer dbos.Shutdown(ctx, 5*time.Second)
	return peer.Serve(peer.Hello{Version: peer.Version("github.com/dbos-inc/dbos-transact-golang")}, map[string]peer.Workload{
		"run-1": peer.Calls(run(ctx, one, "one")),
		"run-3": peer.Calls(run(ctx, three, "three")),
		// DBOS records each step.
		"run-3-behind": peer.Calls(run(ctx, three, "behind")),
	})
}

// run starts a workflow under an id of its own, and waits for its result.
func run(ctx dbos.Context, workflow func(dbos.Context, invoice) (output, error), prefix string) func(context.Context, int64) error {
	return func(_ context.Context, n int64) error {
		handle, err := dbos.RunWorkflow(ctx, workflow, invoice{4200, "EUR"}, dbos.WithWorkflowID(fmt.Sprintf("%s-%d", prefix, n)))
		if err != nil {
			return err
		}
		out, err := handle.GetResult()
		if err == nil && !out.OK {
			err = fmt.Errorf("workflow %s-%d returned %+v", prefix, n, out)
		}
		return err
	}
}

// durable opens a file as DBOS does, with the same pool and pragmas except synchronous.
func durable(path string) (*sql.DB, error) {
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(5000)", "foreign_keys(ON)", "journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", "file:"+path+"?"+query.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(4)
	db.SetConnMaxLifetime(time.Hour)
	return db, nil
}
