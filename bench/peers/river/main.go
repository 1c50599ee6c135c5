// Command river works jobs of River for the benchmark of Holdfast, with the settings of River's own
// benchmark (river bench): it fetches every 2 ms, where the default is 100 ms. The pool has 16
// connections, as Holdfast's has. A job counts when its completion is committed, which the
// subscription of the client reports.
//
//	go run . -db postgres://…    # see package peer for the protocol
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/holdfast-go/holdfast/bench/peers/peer"
)

const (
	schema  = "river"
	workers = 100 // as in the examples of the documentation
)

func main() {
	db := flag.String("db", "", "the database: postgres://…")
	flag.Parse()
	if err := serve(context.Background(), *db); err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, db string) error {
	config, err := pgxpool.ParseConfig(db)
	if err != nil {
		return err
	}
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+schema); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: schema, Logger: log()})
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return err
	}
	jobs := &jobs{pool: pool}
	return peer.Serve(peer.Hello{Version: peer.Version("github.com/riverqueue/river")}, map[string]peer.Workload{
		"run-1":       jobs.calls(),
		"batch-items": jobs.backlog,
	})
}

func log() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

type args struct {
	N        int64  `json:"n"`
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
}

// Kind implements [river.JobArgs].
func (args) Kind() string { return "bench" }

// jobs starts a client for each turn, so that nothing is fetched while other systems are measured.
type jobs struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	events <-chan *river.Event
	gate   chan struct{} // bodies wait for it
}

// start starts a client that works up to atOnce jobs at once.
func (j *jobs) start(ctx context.Context, atOnce, events int) (err error) {
	all := river.NewWorkers()
	river.AddWorker(all, river.WorkFunc(func(ctx context.Context, _ *river.Job[args]) error {
		select {
		case <-j.gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	j.client, err = river.NewClient(riverpgxv5.New(j.pool), &river.Config{
		FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Logger: log(), Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: atOnce}}, Schema: schema, Workers: all,
	})
	if err != nil {
		return err
	}
	j.events, _ = j.client.SubscribeConfig(&river.SubscribeConfig{ChanSize: events, Kinds: []river.EventKind{river.EventKindJobCompleted, river.EventKindJobFailed}})
	return j.client.Start(ctx)
}

// calls inserts a job and waits until it is completed.
func (j *jobs) calls() peer.Workload {
	var w waiters
	insert := peer.Calls(func(ctx context.Context, n int64) error {
		done := w.add(n)
		if _, err := j.client.Insert(ctx, args{n, 4200, "EUR"}, nil); err != nil {
			return err
		}
		return <-done
	})
	return func(t peer.Turn) (peer.Done, error) {
		ctx := context.Background()
		if t.Prepare {
			j.gate = make(chan struct{})
			close(j.gate)
			return peer.Done{}, j.start(ctx, max(workers, t.Clients), 1000)
		}
		go w.tell(j.events)
		d, err := insert(t)
		return d, errors.Join(err, j.client.Stop(ctx))
	}
}

// waiters are callers that wait for their job, by its number.
type waiters struct {
	mu  sync.Mutex
	all map[int64]chan error
}

func (w *waiters) add(n int64) <-chan error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[int64]chan error)
	}
	w.all[n] = make(chan error, 1)
	return w.all[n]
}

// tell passes events on until the client has stopped.
func (w *waiters) tell(events <-chan *river.Event) {
	for e := range events {
		var a args
		err := json.Unmarshal(e.Job.EncodedArgs, &a)
		if err == nil && e.Kind != river.EventKindJobCompleted {
			err = fmt.Errorf("job %d is %s", e.Job.ID, e.Job.State)
		}
		w.mu.Lock()
		if done := w.all[a.N]; done != nil {
			done <- err
		}
		delete(w.all, a.N)
		w.mu.Unlock()
	}
}

// backlog works jobs that were inserted beforehand.
func (j *jobs) backlog(t peer.Turn) (d peer.Done, err error) {
	ctx := context.Background()
	if t.Prepare {
		j.gate = make(chan struct{})
		if err := j.start(ctx, t.Clients, t.Items); err != nil {
			return d, err
		}
		page := make([]river.InsertManyParams, t.Items)
		for i := range page {
			page[i].Args = args{int64(i), 4200, "EUR"}
		}
		_, err := j.client.InsertManyFast(ctx, page)
		return d, err
	}
	start := time.Now()
	close(j.gate)
	for range t.Items {
		if e := <-j.events; e == nil || e.Kind != river.EventKindJobCompleted {
			err = errors.Join(err, fmt.Errorf("a job failed: %+v", e))
		}
	}
	d = peer.Done{Units: t.Items, Took: time.Since(start)}
	return d, errors.Join(err, j.client.Stop(ctx))
}
