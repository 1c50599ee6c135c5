package reactions_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// A holder whose hold ran out, whose stream was blocked for its death and then
// skipped by a person, must not be able to commit its writes.
func TestReviewAHolderFencedByASkipWritesNothing(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		enlist(t, hf, "r", func(d *reactions.Definition) { d.MaxDeaths = 1 })
		emit(t, hf, "s", "charge")
		l := one(t, hf, "r")
		holdfasttest.Advance(t, hf, time.Hour)
		if n, err := reactions.SweepAll(ctx, hf, func([]string) {}); err != nil || n != 1 {
			t.Fatal(n, err)
		}
		repair(t, hf, "skip", reactions.Filter{})
		late(t, hf, l)
	})
}

// While one projection in one workspace is being cleared, a reaction in another
// workspace gets its events.
func TestReviewARebuildStallsNoOtherWorkspace(t *testing.T) {
	s := site{url: holdfasttest.PostgreSQL(t)}
	got := make(chan struct{}, 10)
	body := func(context.Context, *stream.Delivery) error { got <- struct{}{}; return nil }
	q := stream.React("q", stream.Select{}, body, stream.Options{Workspaces: []string{"other"}})
	p := stream.Project("p", stream.Select{}, func(context.Context, holdfast.Tx, stream.Event) error { return nil },
		func(ctx context.Context, _ holdfast.Tx) error { time.Sleep(6 * time.Second); return nil }, stream.Options{})
	hf := s.node(t, p, q)
	ctx := context.Background()
	emit(t, hf, "s", "a")
	standsSo(t, hf, "p", "s", "handled", handled(0))
	var done sync.WaitGroup
	done.Go(func() {
		if err := p.Rebuild(ctx, hf); err != nil {
			t.Error(err)
		}
	})
	defer done.Wait()
	time.Sleep(time.Second)
	begun := time.Now()
	if _, err := stream.Append(holdfast.InWorkspace(ctx, "other"), hf, "o", stream.Any, stream.Event{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	<-got
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("an event of another workspace and reaction waited %s for a rebuild", took)
	}
}

// A lease of one reaction that somebody has locked does not cost the node the
// holds of its other reactions.
func TestReviewALockedRowCostsNoOtherHold(t *testing.T) {
	s := site{url: holdfasttest.PostgreSQL(t)}
	var lost atomic.Bool
	begun := make(chan string, 10)
	hang := func(name string) func(context.Context, *stream.Delivery) error {
		return func(ctx context.Context, d *stream.Delivery) error {
			begun <- name
			select {
			case <-ctx.Done():
				if name == "q" {
					lost.Store(true)
				}
			case <-time.After(8 * time.Second):
			}
			return nil
		}
	}
	o := stream.Options{Lease: time.Second}
	q := stream.React("q", stream.Select{}, hang("q"), stream.Options{Lease: time.Second, Workspaces: []string{"other"}})
	r := stream.React("p", stream.Select{}, hang("p"), o)
	hf := s.node(t, r, q)
	ctx := context.Background()
	emit(t, hf, "s", "a")
	if _, err := stream.Append(holdfast.InWorkspace(ctx, "other"), hf, "o", stream.Any, stream.Event{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	<-begun
	<-begun
	_, err := reactions.Rebuild(ctx, hf, "p", func(context.Context, *store.Tx) error { time.Sleep(4 * time.Second); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if lost.Load() {
		t.Errorf("a rebuild of p in one workspace took q in another workspace away from its worker")
	}
}

// An event that is due before a reaction from now on is widened is delivered,
// also while somebody else is gathering its mark.
func TestReviewWideningWhileSomebodyGathersLosesNothing(t *testing.T) {
	s := site{url: holdfasttest.PostgreSQL(t)}
	hf := s.open(t)
	ctx := context.Background()
	register(t, hf, define("a", "^s$"))
	appendTo(t, hf, "s", "x")
	drain(t, hf, define("a", "^s$"))
	d := define("q", "^new", "x")
	d.FromNow = true
	register(t, hf, d)
	appendTo(t, hf, "new", "x") // must be delivered to q
	appendTo(t, hf, "s", "x")
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SELECT 1 FROM holdfast.follow WHERE reaction = 'a' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		if _, err := reactions.Gather(ctx, hf, store.Place{}, []string{"a", "q"}); err != nil {
			t.Error("gather", err)
		}
	})
	time.Sleep(500 * time.Millisecond)
	d.Events = []string{"x", "y"}
	register(t, hf, d)
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	done.Wait()
	sweep(t, hf)
	sweep(t, hf)
	same(t, "after it was widened", drain(t, hf, d), []string{"new 0 x"})
}

type failing struct {
	*holdfast.Engine
	fail atomic.Bool
	n    atomic.Int64
}

func (f *failing) Do(ctx context.Context, c store.Command) error {
	if c.Decl().Name == "reactions.ack" && f.fail.Load() {
		f.n.Add(1)
		return fault.New(fault.Unavailable, "gone for a moment")
	}
	return f.Engine.Do(ctx, c)
}

// A worker that is told to stop stops, also if the database was gone for a moment.
func TestReviewAWorkerStops(t *testing.T) {
	s := site{path: holdfasttest.SQLite(t)}
	hf := s.open(t)
	d := reactions.Definition{Name: "r", Options: reactions.DefaultOptions()}
	d.Lease = 60 * time.Millisecond
	register(t, hf, d)
	emit(t, hf, "s1", "a")
	emit(t, hf, "s2", "a")
	f := &failing{Engine: hf}
	f.fail.Store(true)
	release := make(chan struct{})
	w := &reactions.Worker{Engine: f, Hub: wake.NewHub(), Log: slog.New(slog.DiscardHandler), Name: "n", Parallel: 1}
	if err := w.Add(&reactions.Handler{Definition: d, Timeout: 300 * time.Millisecond,
		Body: func(context.Context, *reactions.Delivery) error { <-release; return nil }}); err != nil {
		t.Fatal(err)
	}
	// both streams have to be in one take
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	w2 := w
	_ = w2
	go func() { w.Run(ctx); close(ended) }()
	for f.n.Load() < 6 { // the keeper tries to give back what waited too long
		time.Sleep(10 * time.Millisecond)
		if f.n.Load() == 0 && w.Counts()["claimed"] < 2 {
			continue
		}
	}
	f.fail.Store(false)
	stop()
	close(release)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		buf := make([]byte, 1<<20); t.Errorf("the worker hangs: %s", buf[:runtime.Stack(buf, true)])
	}
}

var _ = postgres.URL

// A commit that gives way to another in a deadlock is run again, and counts as no
// failure of its event: here a rebuild and a worker lock rows and table the other
// way round, as the package's own order (rows first, then clear) makes them.
func TestReviewADeadlockWithARebuildBlocksNothing(t *testing.T) {
	s := site{url: holdfasttest.PostgreSQL(t)}
	ctx := context.Background()
	setup := s.open(t)
	s.must(t, setup, `CREATE TABLE sums (one int PRIMARY KEY, n int)`)
	s.must(t, setup, `INSERT INTO sums VALUES (1, 0)`)
	inApply, cleared := make(chan struct{}, 10), make(chan struct{})
	var applied, clears atomic.Int64
	p := stream.Project("p", stream.Select{}, func(ctx context.Context, tx holdfast.Tx, _ stream.Event) error {
		if _, err := postgres.Raw(tx).Exec(ctx, `UPDATE sums SET n = n + 1`); err != nil {
			return err
		}
		if applied.Add(1) == 1 {
			inApply <- struct{}{}
			<-cleared // until the rebuild has its rows
			time.Sleep(300 * time.Millisecond)
		}
		return nil
	}, func(ctx context.Context, tx holdfast.Tx) error {
		if clears.Add(1) == 1 {
			close(cleared)
		}
		_, err := postgres.Raw(tx).Exec(ctx, `UPDATE sums SET n = 0`)
		return err
	}, stream.Options{Retries: stream.Never})
	hf := s.node(t, p)
	emit(t, hf, "s", "a")
	<-inApply
	if err := p.Rebuild(ctx, hf); err != nil {
		t.Errorf("the rebuild is answered %v", err)
	}
	standsSo(t, hf, "p", "s", "handled", handled(0))
}

func TestReviewAnUpdateThatGivesWayRunsAgain(t *testing.T) {
	s := site{url: holdfasttest.PostgreSQL(t)}
	hf := s.open(t)
	n := 0
	err := hf.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) error {
		if n++; n == 1 {
			_, err := postgres.Raw(tx).Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$`)
			return err
		}
		return nil
	})
	if err != nil {
		t.Errorf("an update whose own statement met a deadlock is not run again: %v", err)
	}
}
