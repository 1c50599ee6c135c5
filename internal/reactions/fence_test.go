package reactions_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// waiters returns how many sessions of a PostgreSQL database wait for a lock.
func (s testDB) waiters(t *testing.T, hf *holdfast.Engine) int {
	t.Helper()
	n, err := strconv.Atoi(s.texts(t, hf, `SELECT count(*)::text FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// emitElsewhere appends an event in the workspace "other".
func emitElsewhere(t *testing.T, hf *holdfast.Engine, name string) {
	t.Helper()
	if _, err := stream.Append(holdfast.InWorkspace(context.Background(), "other"), hf, name, stream.Any, stream.Event{Name: "x"}); err != nil {
		t.Fatal(err)
	}
}

// deadlocks is a statement that fails like the victim of a deadlock.
const deadlocks = `DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$`

// TestAHolderFencedByASkipWritesNothing verifies that a holder whose lease expired, and
// whose stream was blocked for its crash and then skipped by a user, can commit nothing.
func TestAHolderFencedByASkipWritesNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		enlist(t, hf, "r", func(d *reactions.Definition) { d.MaxCrashes = 1 })
		emit(t, hf, "s", "charge")
		l := one(t, hf, "r")
		holdfasttest.Advance(t, hf, time.Hour)
		if n, err := reactions.SweepAll(context.Background(), engine.Of(hf), func([]string) {}); err != nil || n != 1 {
			t.Fatal(n, err)
		}
		repair(t, hf, "skip", reactions.Filter{})
		checkFenced(t, hf, l)
	})
}

// TestARebuildStallsNoOtherWorkspace verifies that a reaction in one workspace gets its
// events while a projection in another one is being cleared.
func TestARebuildStallsNoOtherWorkspace(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	got, clearing, rebuilt := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
	begun := sync.OnceFunc(func() { close(clearing) })
	q := stream.React("q", stream.Select{}, func(context.Context, *stream.Delivery) error { got <- struct{}{}; return nil },
		stream.Options{Workspaces: []string{"other"}})
	p := stream.Project("p", stream.Select{}, func(context.Context, holdfast.Tx, stream.Event) error { return nil },
		func(ctx context.Context, _ holdfast.Tx) error {
			begun()
			select {
			case <-got:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, stream.Options{})
	hf := s.node(t, p, q)
	emit(t, hf, "s", "a")
	waitForPosition(t, hf, "p", "s", "is handled", handled(0))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	go func() {
		rebuilt <- p.Rebuild(ctx, hf)
		begun()
	}()
	<-clearing
	emitElsewhere(t, hf, "o")
	if err := <-rebuilt; err != nil {
		t.Errorf("an event of another workspace and reaction waited for a rebuild, which returned %v", err)
	}
	waitForPosition(t, hf, "p", "s", "is handled again", handled(0))
}

// TestALockedRowCostsNoOtherHold verifies that a node keeps renewing its leases while
// the row of another stream that it holds is locked.
func TestALockedRowCostsNoOtherHold(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	begun := make(chan struct{}, 10)
	hang := func(ctx context.Context, _ *stream.Delivery) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	const lease = 2 * time.Second
	hf := s.node(t, stream.React("p", stream.Select{}, hang, stream.Options{Lease: lease}),
		stream.React("q", stream.Select{}, hang, stream.Options{Lease: lease, Workspaces: []string{"other"}}))
	emit(t, hf, "s", "a")
	emitElsewhere(t, hf, "o")
	<-begun
	<-begun
	clearing, renewed, rebuilt := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	goOn := sync.OnceFunc(func() { close(renewed) })
	defer goOn()
	started := sync.OnceFunc(func() { close(clearing) })
	go func() {
		_, err := reactions.Rebuild(context.Background(), engine.Of(hf), "p", func(context.Context, *store.Tx) error {
			started()
			<-renewed
			return nil
		})
		rebuilt <- err
		started()
	}()
	<-clearing // the row of p is locked
	held := func() reactions.Position {
		all, _, err := reactions.Query(holdfast.InWorkspace(context.Background(), "other"), engine.Of(hf), reactions.Filter{Reaction: "q"}, reactions.Position{}, 1)
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0]
	}
	was, now := held(), held()
	testkit.Eventually(t, "the lease of q is renewed, or lost", func() bool {
		now = held()
		return now.Epoch != was.Epoch || now.Until.After(was.Until)
	})
	if now.Epoch != was.Epoch {
		t.Error("a rebuild of p in one workspace took the lease of q in another")
	}
	goOn()
	if err := <-rebuilt; err != nil {
		t.Error(err)
	}
}

// TestWideningWhileSomebodyGathersLosesNothing verifies that an event which is due for a
// reaction with FromNow is delivered, although the reaction is widened while its due
// notice is being collected.
func TestWideningWhileSomebodyGathersLosesNothing(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	ctx, hf, other := context.Background(), s.open(t), s.open(t)
	register(t, hf, define("a", "^s$"))
	appendTo(t, hf, "s", "x")
	drain(t, hf, define("a", "^s$"))
	d := define("q", "^new", "x")
	d.FromNow = true
	register(t, hf, d)
	appendTo(t, hf, "new", "x") // must be delivered to q
	appendTo(t, hf, "s", "x")
	lock := s.hold(t, hf, pgx.ReadCommitted)
	if _, err := lock.Exec(ctx, `SELECT 1 FROM holdfast.follow WHERE reaction = 'a' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	gathered, widened := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := reactions.CollectDue(ctx, engine.Of(hf), store.Partition{}, []string{"a", "q"})
		gathered <- err
	}()
	testkit.Eventually(t, "the collection of due notices waits for the row", func() bool { return s.waiters(t, other) == 1 })
	d.Events = []string{"x", "y"}
	go func() {
		_, err := reactions.Register(ctx, engine.Of(hf), d)
		widened <- err
	}()
	testkit.Eventually(t, "the registration is done, or waits for the collection", func() bool {
		return len(widened) == 1 || s.waiters(t, other) == 2
	})
	lock.commit(t)
	if err := errors.Join(<-gathered, <-widened); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the registration is settled", func() bool { sweep(t, hf); return settled(t, hf, "q") })
	same(t, "after it was widened", drain(t, hf, d), []string{"new 0 x"})
}

// outage is an engine on which one verb fails until the outage is over.
type outage struct {
	*engine.Engine
	verb  string
	over  atomic.Bool
	tries atomic.Int64
}

func (o *outage) Do(ctx context.Context, c store.Command) error {
	if c.Decl().Name == o.verb && !o.over.Load() {
		o.tries.Add(1)
		return fault.New(fault.Unavailable, "gone for a moment")
	}
	return o.Engine.Do(ctx, c)
}

// TestAWorkerStopsAfterAnOutage verifies that a stopping worker ends, although the
// database was unavailable while the worker released leases that had waited too long
// behind a hanging body.
func TestAWorkerStopsAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := testDB{path: holdfasttest.SQLite(t)}
	hf := s.open(t)
	d := define("r", "")
	d.Lease = time.Second
	register(t, hf, d)
	emit(t, hf, "s1", "a")
	emit(t, hf, "s2", "a")
	o := &outage{Engine: engine.Of(hf), verb: "reactions.ack_all"}
	release, ended := make(chan struct{}), make(chan struct{})
	w := &reactions.Worker{Engine: o, Hub: wake.NewHub(), Log: slog.New(slog.DiscardHandler), Name: "n", MaxConcurrency: 1}
	if err := w.Add(&reactions.Handler{Definition: d, Timeout: 300 * time.Millisecond,
		Body: func(context.Context, *reactions.Delivery) error { <-release; return nil }}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { w.Run(ctx); close(ended) }()
	testkit.Eventually(t, "the worker tries to release the waiting stream", func() bool { return o.tries.Load() >= 3 })
	o.over.Store(true)
	stop()
	close(release)
	testkit.Eventually(t, "the worker ends", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}

// unanswered is an engine on which the first end of a lease is committed, and its response comes late.
type unanswered struct {
	*engine.Engine
	first   sync.Once
	respond chan struct{}
}

func (u *unanswered) wait() { u.first.Do(func() { <-u.respond }) }

func (u *unanswered) Update(ctx context.Context, f func(context.Context, *store.Tx) error) error {
	err := u.Engine.Update(ctx, f)
	u.wait()
	return err
}

func (u *unanswered) Do(ctx context.Context, c store.Command) error {
	err := u.Engine.Do(ctx, c)
	if strings.HasPrefix(c.Decl().Name, "reactions.ack") {
		u.wait()
	}
	return err
}

// TestALateResponseDoesNotDelayItsStream verifies that the next event of a stream is delivered at once, although the node
// still waits for the response to the end of the lease before: no body hangs there.
func TestALateResponseDoesNotDelayItsStream(t *testing.T) {
	t.Parallel()
	for name, writes := range map[string]bool{"with a write": true, "without": false} {
		t.Run(name, func(t *testing.T) { each(t, func(t *testing.T, s testDB) { lateResponse(t, s, writes) }) })
	}
}

func lateResponse(t *testing.T, s testDB, writes bool) {
	hf := s.open(t)
	d, other := define("r", ""), define("other", "^none$")
	d.Lease, other.Lease = time.Hour, 300*time.Millisecond // the shortest lease sets the pace of renewals, which find that the lease has ended
	register(t, hf, d)
	register(t, hf, other)
	u := &unanswered{Engine: engine.Of(hf), respond: make(chan struct{})}
	w := &reactions.Worker{Engine: u, Hub: engine.Of(hf).Hub(), Log: slog.New(slog.DiscardHandler), Name: "n", MaxConcurrency: 4}
	var delivered atomic.Int64
	body := func(_ context.Context, x *reactions.Delivery) error {
		delivered.Add(1)
		if writes {
			x.Commit(func(context.Context, *store.Tx) error { return nil })
		}
		return nil
	}
	for _, h := range []*reactions.Handler{{Definition: d, Timeout: time.Hour, Body: body}, {Definition: other, Timeout: time.Hour, Body: body}} {
		if err := w.Add(h); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { w.Run(ctx) })
	defer working.Wait()
	defer stop()
	defer close(u.respond)
	emit(t, hf, "s", "a")
	waitForPosition(t, hf, "r", "s", "is handled", handled(0))
	testkit.Eventually(t, "a renewal finds that the lease has ended", func() bool { return w.Held() == 0 })
	emit(t, hf, "s", "a")
	testkit.Eventually(t, "the next event is delivered although the first response has not come", func() bool { return delivered.Load() == 2 })
}

// TestAnErrorFromElsewhereCounts verifies that a body's error which has the code of an unavailable database, or of a lost lease,
// but is from another system, counts as a failure: it blocks the stream at once if it is not retryable, else after its
// attempts.
func TestAnErrorFromElsewhereCounts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s testDB) {
		var calls atomic.Int64
		once := stream.React("once", stream.Select{Pattern: "^s$"}, func(context.Context, *stream.Delivery) error {
			calls.Add(1)
			return holdfast.NonRetryable(fault.New(fault.OutcomeUnknown, "the charge may have been made"))
		}, stream.Options{})
		twice := stream.React("twice", stream.Select{Pattern: "^s$"}, func(context.Context, *stream.Delivery) error {
			return fault.New(fault.LeaseLost, "a lease of another system")
		}, stream.Options{Retry: holdfast.RetryPolicy{MaxAttempts: 2, Backoff: time.Millisecond}})
		hf := s.node(t, once, twice)
		emit(t, hf, "s", "a")
		for _, name := range []string{"once", "twice"} {
			waitForPosition(t, hf, name, "s", "is blocked", func(p stream.Position) bool { return p.Blocked })
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("an error that is not retryable was retried: %d calls", n)
		}
	})
}

// TestADeadlockWithARebuildBlocksNothing verifies that a rebuild and a worker which lock
// the reaction's rows and a user table in opposite order both finish, and that the
// deadlock is no failure of the event.
func TestADeadlockWithARebuildBlocksNothing(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	other := s.open(t)
	s.must(t, other, `CREATE TABLE sums (one int PRIMARY KEY, n int)`)
	s.must(t, other, `INSERT INTO sums VALUES (1, 0)`)
	applying, locked, rebuilt := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	goOn := sync.OnceFunc(func() { close(locked) })
	defer goOn()
	var applied atomic.Int64
	p := stream.Project("p", stream.Select{}, func(ctx context.Context, tx holdfast.Tx, _ stream.Event) error {
		_, err := storetest.Exec(ctx, tx, `UPDATE sums SET n = n + 1`)
		if err == nil && applied.Add(1) == 1 {
			close(applying)
			<-locked // until the rebuild has its rows locked and waits for this one
		}
		return err
	}, func(ctx context.Context, tx holdfast.Tx) error {
		_, err := storetest.Exec(ctx, tx, `UPDATE sums SET n = 0`)
		return err
	}, stream.Options{Retry: holdfast.RetryPolicy{MaxAttempts: 1}})
	hf := s.node(t, p)
	emit(t, hf, "s", "a")
	<-applying
	go func() { rebuilt <- p.Rebuild(context.Background(), hf) }()
	testkit.Eventually(t, "the rebuild waits for the table", func() bool { return s.waiters(t, other) == 1 })
	goOn()
	if err := <-rebuilt; err != nil {
		t.Errorf("rebuild returned %v", err)
	}
	waitForPosition(t, hf, "p", "s", "is handled", handled(0))
	same(t, "the sum", s.texts(t, other, `SELECT n::text FROM sums`), []string{"1"})
}

// TestAnUpdateWhoseStatementMeetsADeadlockRunsAgain verifies that an update is retried
// if one of the program's own statements in it is the victim of a deadlock.
func TestAnUpdateWhoseStatementMeetsADeadlockRunsAgain(t *testing.T) {
	t.Parallel()
	hf, n := testDB{url: holdfasttest.PostgreSQL(t)}.open(t), 0
	err := hf.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) error {
		if n++; n > 1 {
			return nil
		}
		_, err := postgres.Raw(tx).Exec(ctx, deadlocks)
		return err
	})
	if err != nil || n != 2 {
		t.Errorf("ran %d times, error %v, want 2", n, err)
	}
}

// TestADeadlockIsNoFailureOfTheEvent verifies that an apply which is the victim of a
// deadlock is retried and does not block its stream.
func TestADeadlockIsNoFailureOfTheEvent(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	var n atomic.Int64
	p := stream.Project("p", stream.Select{}, func(ctx context.Context, tx holdfast.Tx, _ stream.Event) error {
		if n.Add(1) > 1 {
			return nil
		}
		_, err := storetest.Exec(ctx, tx, deadlocks)
		return err
	}, func(context.Context, holdfast.Tx) error { return nil }, stream.Options{Retry: holdfast.RetryPolicy{MaxAttempts: 1}})
	hf := s.node(t, p)
	emit(t, hf, "s", "a")
	at := waitForPosition(t, hf, "p", "s", "is handled or blocked", func(p stream.Position) bool { return p.Blocked || handled(0)(p) })
	if at.Blocked {
		t.Errorf("one deadlock blocked the stream: %s", at.Error)
	}
}

// hookEngine is an engine that calls f right before a verb, the first time.
type hookEngine struct {
	*engine.Engine
	verb string
	f    func()
}

func (b *hookEngine) Do(ctx context.Context, c store.Command) error {
	if f := b.f; c.Decl().Name == b.verb && f != nil {
		b.f = nil
		f()
	}
	return b.Engine.Do(ctx, c)
}

// registerWithoutWait registers a reaction without waiting for open transactions.
func registerWithoutWait(t *testing.T, hf *holdfast.Engine, d reactions.Definition) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := reactions.Register(ctx, &hookEngine{engine.Of(hf), "reactions.count_open_transactions", cancel}, d); err != nil && ctx.Err() == nil {
		t.Fatalf("register %s: %v", d.Name, err)
	}
}

// TestASlowFinisherEndsNoOtherRegistration verifies that a node which is slow to finish
// a registration does not end the wait of the next registration.
func TestASlowFinisherEndsNoOtherRegistration(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	ctx, hf, at := context.Background(), s.open(t), store.Partition{Workspace: store.DefaultWorkspace}
	outwaited := func() { // until it waits only for prepared transactions
		t.Helper()
		testkit.Eventually(t, "all open transactions have ended", func() bool {
			if done, err := reactions.Finish(ctx, engine.Of(hf), at, "r"); done || err != nil {
				t.Fatal(done, err)
			}
			return strings.HasPrefix(s.texts(t, hf, `SELECT coalesce(waits::text, '') FROM holdfast.reaction`)[0], `["prepared"`)
		})
	}
	appendTo(t, hf, "a1", "x")
	open := s.hold(t, hf, pgx.ReadCommitted)
	registerWithoutWait(t, hf, define("r", "^a"))
	open.commit(t)
	outwaited()
	wide := define("r", "^[ab]")
	slow := &hookEngine{engine.Of(hf), "reactions.mark_live", func() {
		late := s.hold(t, hf, pgx.ReadCommitted)
		appendTo(t, late.tx, "b1", "x") // with the current registry
		registerWithoutWait(t, hf, wide)
		late.commit(t)
		outwaited()
	}}
	if _, err := reactions.Finish(ctx, slow, at, "r"); err != nil || slow.f != nil {
		t.Fatalf("Finish did not end: error %v", err)
	}
	testkit.Eventually(t, "the registration is settled", func() bool { sweep(t, hf); return settled(t, hf, "r") })
	same(t, "after it was widened", drain(t, hf, wide), []string{"a1 0 x", "b1 0 x"})
}

// TestANarrowedReactionSeesOnlyItsStreams verifies that a reaction whose pattern was
// narrowed gets no stream that it no longer follows.
func TestANarrowedReactionSeesOnlyItsStreams(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s testDB) {
		hf := s.open(t)
		register(t, hf, define("r", ""))
		appendTo(t, hf, "order-1", "x")
		appendTo(t, hf, "refund-1", "x")
		narrow := define("r", "^refund-")
		register(t, hf, narrow)
		same(t, "after it was narrowed", drain(t, hf, narrow), []string{"refund-1 0 x"})
	})
}

// checkRemoved checks that nothing is left of the removed reactions after enough sweeps.
func (s testDB) checkRemoved(t *testing.T, hf *holdfast.Engine) {
	t.Helper()
	testkit.Eventually(t, "the removed reaction is deleted", func() bool {
		sweep(t, hf)
		return len(s.texts(t, hf, `SELECT name FROM holdfast.reaction WHERE state = 'removed'`)) == 0
	})
	same(t, "the due notices without a reaction", s.texts(t, hf, `SELECT reaction || ' ' || stream FROM holdfast.due`), nil)
	same(t, "the positions without a reaction", s.texts(t, hf, `SELECT reaction || ' ' || stream FROM holdfast.follow`), nil)
}

// TestAnAppendThatWaitedOutlivesNoReaction verifies that an append which waited for its
// stream while its reaction was removed leaves no due notice: it used a registry with
// the reaction, and commits after the removal.
func TestAnAppendThatWaitedOutlivesNoReaction(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	ctx, hf := context.Background(), s.open(t)
	register(t, hf, define("r", ""))
	appendTo(t, hf, "s", "x")
	errs := storetest.Queue(t, s.url, `SELECT FROM holdfast.stream WHERE name = 's' FOR UPDATE`, nil, func() {
		if yes, err := reactions.Remove(ctx, engine.Of(hf), "r"); err != nil || !yes {
			t.Error(yes, err)
		}
		sweep(t, hf)
	}, func() error {
		_, err := stream.Append(ctx, hf, "s", stream.Any, stream.Event{Name: "x"})
		return err
	})
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	s.checkRemoved(t, hf)
}

// TestARemovedReactionIsMadeAgainAtOnce verifies that a reaction can be registered again
// while a transaction from before its removal is open, that the second registration
// starts at the first event whatever that transaction appends, and that nothing is left
// when it is removed.
func TestARemovedReactionIsMadeAgainAtOnce(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	ctx, hf := context.Background(), s.open(t)
	d := define("r", "")
	register(t, hf, d)
	appendTo(t, hf, "s", "x")
	same(t, "in its first life", drain(t, hf, d), []string{"s 0 x"})
	open := s.hold(t, hf, pgx.ReadCommitted)
	appendTo(t, open.tx, "o", "x") // with the registry of the first registration
	remove := func() {
		t.Helper()
		if yes, err := reactions.Remove(ctx, engine.Of(hf), "r"); err != nil || !yes {
			t.Fatal(yes, err)
		}
	}
	remove()
	registerWithoutWait(t, hf, d)
	same(t, "in its second life", drain(t, hf, d), []string{"s 0 x"})
	open.commit(t)
	testkit.Eventually(t, "the registration is settled", func() bool { sweep(t, hf); return settled(t, hf, "r") })
	same(t, "behind the transaction", drain(t, hf, d), []string{"o 0 x"})
	remove()
	s.checkRemoved(t, hf)
}
