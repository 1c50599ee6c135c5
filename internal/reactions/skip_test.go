package reactions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
)

// journal records the events that reactions got: in a table with the acknowledgement, or
// only in memory.
type journal struct {
	*testing.T
	testDB
	mu   sync.Mutex
	last map[string]int64 // by reaction and stream, for reactions without a commit
}

const journalTable = `CREATE TABLE seen (reaction text NOT NULL, stream text NOT NULL, version bigint NOT NULL, UNIQUE (reaction, stream, version))`

// once is a reaction that records each event with its acknowledgement. It accepts only
// the first event of a stream and the one after the last recorded.
func (j *journal) once(name string, fromNow bool) holdfast.Part {
	return stream.React(name, stream.Select{Pattern: "^s-"}, func(_ context.Context, d *stream.Delivery) error {
		d.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
			first := int64(d.Version) - 1 // with FromNow the first may be any
			if !fromNow {
				first = -1
			}
			n, err := storetest.Exec(ctx, tx, `INSERT INTO seen
				SELECT q.r, q.s, q.v FROM (SELECT CAST($1 AS text) AS r, CAST($2 AS text) AS s, CAST($3 AS bigint) AS v, CAST($4 AS bigint) AS f) AS q
				WHERE coalesce((SELECT max(x.version) FROM seen AS x WHERE x.reaction = q.r AND x.stream = q.s), q.f) = q.v - 1`,
				name, d.Stream, int64(d.Version), first)
			if err == nil && n != 1 {
				j.Errorf("%s got %s %d, but did not handle the event before it", name, d.Stream, d.Version)
			}
			return err
		})
		return nil
	}, stream.Options{FromNow: fromNow})
}

// least is a reaction that records nothing with its acknowledgement: an event may be
// repeated, but never comes before its predecessor.
func (j *journal) least(name string) holdfast.Part {
	return stream.React(name, stream.Select{Pattern: "^s-"}, func(_ context.Context, d *stream.Delivery) error {
		j.mu.Lock()
		defer j.mu.Unlock()
		last, ok := j.last[d.Stream]
		if !ok {
			last = -1
		}
		if int64(d.Version) > last+1 {
			j.Errorf("%s got %s %d after version %d", name, d.Stream, d.Version, last)
		}
		j.last[d.Stream] = max(last, int64(d.Version))
		return nil
	}, stream.Options{})
}

// written are the events that were acknowledged to the writers.
type written struct {
	mu    sync.Mutex
	heads map[string]int64
	after map[string]bool // began to commit after the late reactions were registered
	count atomic.Int64
	late  atomic.Bool
}

func (w *written) note(name string, head, n int64, late bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heads[name] = max(w.heads[name], head)
	for v := head - n + 1; late && v <= head; v++ {
		w.after[fmt.Sprint(name, " ", v)] = true
	}
	w.count.Add(1)
}

// TestNothingIsSkippedOrRepeated runs twelve writers over dozens of streams, on
// PostgreSQL four more whose transactions stay open while dozens of later ones commit,
// two nodes that serve the same reactions, and a third that registers more in the
// middle. It verifies that each event is recorded once with its acknowledgement and in
// stream order, from the first on; that a reaction with FromNow gets every event that
// began to commit after its registration; and that a reaction without a commit gets each
// event at least once, never before its predecessor.
func TestNothingIsSkippedOrRepeated(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s testDB) {
		j := &journal{T: t, testDB: s, last: map[string]int64{}}
		w := &written{heads: map[string]int64{}, after: map[string]bool{}}
		s.must(t, s.open(t), journalTable)
		a := s.node(t, j.once("once", false), j.least("least"))
		b := s.node(t, j.once("once", false), j.least("least"))
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		var group sync.WaitGroup
		for i := range testlevel.Pick(6, 12, 12) {
			hf := []*holdfast.Engine{a, b}[i%2]
			group.Go(func() { writeOn(ctx, t, hf, w) })
		}
		if s.postgres() {
			for i := range 4 {
				level := []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead}[i%2]
				group.Go(func() { holdOpen(ctx, t, s, a, w, i, level) })
			}
		}
		testkit.Eventually(t, "many events are written", func() bool { return w.count.Load() > 15 })
		c := s.node(t, j.once("late", false), j.once("now", true))
		w.late.Store(true)
		_ = clock.Wait(ctx, testlevel.Pick(0, time.Second, time.Minute))
		from := w.count.Load()
		testkit.Eventually(t, "many events are written after the registration", func() bool { return w.count.Load() > from+15 })
		stop()
		group.Wait()
		total := 0
		for _, head := range w.heads {
			total += int(head) + 1
		}
		seen := func(name string) int {
			return len(s.texts(t, c, `SELECT stream FROM seen WHERE reaction = '`+name+`'`))
		}
		missed := func() (all []string) {
			now := map[string]bool{}
			for _, one := range s.texts(t, c, `SELECT stream || ' ' || version FROM seen WHERE reaction = 'now'`) {
				now[one] = true
			}
			for one := range w.after {
				if !now[one] {
					all = append(all, one)
				}
			}
			return all
		}
		waitUntilNone(t, "events are not delivered, or began to commit after the reaction from now on was registered and are not", func() int {
			sweep(t, c)
			j.mu.Lock()
			got := 0
			for _, v := range j.last {
				got += int(v) + 1
			}
			j.mu.Unlock()
			return 3*total - got - seen("once") - seen("late") + len(missed())
		})
		t.Logf("%d events on %d streams, %d of them after the late registration, which got %d", total, len(w.heads), len(w.after), seen("now"))
	})
}

// writeOn appends until ctx ends.
func writeOn(ctx context.Context, t *testing.T, hf *holdfast.Engine, w *written) {
	for ctx.Err() == nil {
		name, n := fmt.Sprint("s-", rand.IntN(36)), 1+rand.IntN(3)
		late := w.late.Load()
		head, err := stream.Append(context.Background(), hf, name, stream.Any, make3(n)...)
		if fault.IsRetryable(err) { // nothing was written: several busy nodes on one SQLite file may starve a writer for long
			continue
		}
		if err != nil {
			t.Errorf("append: %v", err)
			return
		}
		w.note(name, int64(head), int64(n), late)
	}
}

func make3(n int) []stream.Event {
	return []stream.Event{{Name: "x"}, {Name: "y"}, {Name: "z"}}[:n]
}

// holdOpen appends, to its own streams and to new ones, in transactions that stay open
// until many others have committed.
func holdOpen(ctx context.Context, t *testing.T, s testDB, hf *holdfast.Engine, w *written, i int, level pgx.TxIsoLevel) {
	for round := 0; ctx.Err() == nil; round++ {
		h := s.hold(t, hf, level)
		from := w.count.Load()
		heads := map[string]int64{}
		add := func(name string) bool {
			head, err := stream.Append(context.Background(), h.tx, name, stream.Any, make3(2)...)
			if err != nil {
				t.Errorf("append in a transaction: %v", err)
			}
			heads[name] = int64(head)
			return err == nil
		}
		if !add(fmt.Sprint("s-held-", i)) {
			return
		}
		for w.count.Load() < from+40 && clock.Wait(ctx, time.Millisecond) == nil {
		}
		if !add(fmt.Sprint("s-held-", i, "-", round)) {
			return
		}
		late := w.late.Load()
		h.commit(t)
		_ = h.Conn().Close(context.Background())
		for name, head := range heads {
			w.note(name, head, 2, late)
		}
	}
}

// TestALateCommitIsDelivered verifies that an event whose transaction stays open while
// later ones of the same reaction commit and are handled is delivered when it commits,
// and that the commit itself wakes the node.
func TestALateCommitIsDelivered(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	got := make(chan string, 100)
	hf := s.node(t, stream.React("r", stream.Select{}, func(_ context.Context, d *stream.Delivery) error {
		got <- fmt.Sprint(d.Stream, " ", d.Version)
		return nil
	}, stream.Options{}))
	appendTo(t, hf, "a", "x")
	want := []string{"a 0"}
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		open := s.hold(t, hf, level)
		appendTo(t, open.tx, "a", "held")
		for i := range 20 {
			name := fmt.Sprint(level, i)
			appendTo(t, hf, name, "x")
			want = append(want, name+" 0")
		}
		for len(want) > 0 {
			g := <-got
			if g[:2] == "a " && g != "a 0" {
				t.Fatalf("%s was delivered before it was committed", g)
			}
			want = want[1:]
		}
		begun := clock.Now()
		open.commit(t)
		g := <-got
		if g[:2] != "a " {
			t.Errorf("got event %s", g)
		}
		t.Logf("%s was delivered %s after its commit", g, clock.Since(begun).Round(time.Millisecond))
	}
}

type cents struct{ Cents int }

// balance folds an account.
func balance(ctx context.Context, d holdfast.Doer, account string) (sum int, at stream.Version, err error) {
	at = stream.None
	for {
		page, err := holdfast.Collect(stream.Read(ctx, d, account, at+1))
		if err != nil || len(page) == 0 {
			return sum, at, err
		}
		for _, e := range page {
			var c cents
			if err := json.Unmarshal(e.Data, &c); err != nil {
				return 0, 0, err
			}
			sum, at = sum+c.Cents, e.Version
		}
	}
}

// withdraw takes a cent if there is one.
func withdraw(ctx context.Context, d holdfast.Doer, account string) error {
	sum, at, err := balance(ctx, d, account)
	if err != nil || sum == 0 {
		return err
	}
	_, err = stream.Append(ctx, d, account, at, stream.Event{Name: "withdrawn", Data: []byte(`{"Cents": -1}`)})
	return err
}

// TestReactionsNeverOverdraw verifies that reactions which fold an account and append to
// it at the version they loaded never overdraw it and come to an end: with and without
// their acknowledgement, two of them on each of two nodes.
func TestReactionsNeverOverdraw(t *testing.T) {
	wanted, there := testlevel.Pick(30, 60, 60), testlevel.Pick(12, 25, 25)
	t.Parallel()
	each(t, func(t *testing.T, s testDB) {
		options := stream.Options{Retry: holdfast.RetryPolicy{MaxAttempts: 1001, Backoff: time.Millisecond, Multiplier: 1}}
		var nodes []*holdfast.Engine
		parts := func() (all []holdfast.Part) {
			for _, inside := range []bool{true, false} {
				all = append(all, stream.React(fmt.Sprint("inside-", inside), stream.Select{Pattern: "^ask-"}, func(ctx context.Context, d *stream.Delivery) error {
					if !inside {
						return withdraw(ctx, nodes[0], "account")
					}
					d.WriteTx(func(ctx context.Context, tx holdfast.Tx) error { return withdraw(ctx, tx, "account") })
					return nil
				}, options))
			}
			return all
		}
		hf := s.open(t, parts()...)
		nodes = append(nodes, hf, s.open(t, parts()...))
		if _, err := stream.Append(t.Context(), hf, "account", stream.None, stream.Event{Name: "paid", Data: fmt.Appendf(nil, `{"Cents": %d}`, there)}); err != nil {
			t.Fatal(err)
		}
		for i := range wanted {
			appendTo(t, hf, fmt.Sprint("ask-", i%12), "please")
		}
		for _, n := range nodes {
			testkit.Run(t, n)
		}
		no := false
		waitUntilNone(t, "streams have events left", func() int {
			all, err := holdfast.Collect(stream.ListPositions(context.Background(), hf, stream.PositionFilter{Blocked: &no}))
			if err != nil {
				t.Fatal(err)
			}
			left := 5 * (24 - len(all))
			for _, p := range all {
				left += int(p.Head - p.Watermark)
			}
			return left
		})
		sum, at, err := balance(context.Background(), hf, "account")
		if err != nil || sum != 0 || at != stream.Version(there) {
			t.Errorf("balance is %d at version %d (error %v), after %d requests and %d events", sum, at, err, 2*wanted, there)
		}
	})
}

// TestLowPriorityIsNotStarved verifies that a reaction without priority, under an
// unlimited load of one with priority, is taken as soon as it has waited for as long as
// the priority is worth, and not before.
func TestLowPriorityIsNotStarved(t *testing.T) {
	const worth = 30
	t.Parallel()
	each(t, func(t *testing.T, s testDB) {
		ctx, hf := context.Background(), s.open(t)
		high, low := define("high", "^h-"), define("low", "^l$")
		high.Priority = worth
		register(t, hf, high)
		register(t, hf, low)
		wanted := []reactions.Wanted{{Name: "high", Lease: time.Hour}, {Name: "low", Lease: time.Hour}}
		appendTo(t, hf, "l", "x")
		if _, err := reactions.CollectDue(ctx, engine.Of(hf), store.Partition{}, []string{"low"}); err != nil {
			t.Fatal(err)
		}
		for second := 0; ; second += 5 {
			for i := range 3 { // and one is taken
				appendTo(t, hf, fmt.Sprint("h-", second, "-", i), "x")
			}
			if _, err := reactions.CollectDue(ctx, engine.Of(hf), store.Partition{}, []string{"high", "low"}); err != nil {
				t.Fatal(err)
			}
			got, err := reactions.Take(ctx, engine.Of(hf), reactions.TakeArgs{Reactions: wanted, Holder: "h", Limit: 1})
			if err != nil || len(got) != 1 {
				t.Fatalf("took %d streams, error %v, want 1", len(got), err)
			}
			if got[0].Reaction == "low" {
				if second < worth {
					t.Errorf("the stream without priority was taken after %d seconds", second)
				}
				return
			}
			if _, err := reactions.AckOne(ctx, engine.Of(hf), reactions.End{Lease: got[0], Done: got[0].Handled()}); err != nil {
				t.Fatal(err)
			}
			if second > 4*worth {
				t.Fatalf("the stream without priority waited %d seconds, but the priority is worth %d", second, worth)
			}
			holdfasttest.Advance(t, hf, 5*time.Second)
		}
	})
}

// TestAnAppendWakesAnIdleNode verifies that an idle node handles an append of its own
// process at once, and on PostgreSQL one of another node too, not at the next poll: of
// many attempts, spread over the poll interval, none may take as long as a poll would
// take for half of them.
func TestAnAppendWakesAnIdleNode(t *testing.T) {
	each(t, func(t *testing.T, s testDB) {
		got := make(chan struct{}, 10)
		hf := s.node(t, stream.React("r", stream.Select{}, func(context.Context, *stream.Delivery) error {
			got <- struct{}{}
			return nil
		}, stream.Options{}))
		from := map[string]*holdfast.Engine{"its own": hf}
		if s.postgres() {
			from["another"] = s.node(t)
			appendTo(t, from["another"], "warm", "x")
			<-got
		}
		for what, by := range from {
			slow := 0
			for i := range 3 {
				// after this long without work, polls are a second or two apart
				_ = clock.Wait(t.Context(), 1700*time.Millisecond)
				begun := clock.Now()
				appendTo(t, by, fmt.Sprint(what, i), "x")
				<-got
				took := clock.Since(begun)
				t.Logf("an append of %s process was handled after %s", what, took.Round(time.Millisecond))
				if took > 500*time.Millisecond {
					slow++
				}
			}
			if slow > 1 {
				t.Errorf("%d of 3 appends of %s process waited for a poll", slow, what)
			}
		}
	})
}

// TestAnIdleNodeWithReactionsAsksSeldom verifies that an idle node that serves reactions
// queries PostgreSQL at most twice a second.
func TestAnIdleNodeWithReactionsAsksSeldom(t *testing.T) {
	testlevel.Long(t)
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	var parts []holdfast.Part
	for i := range 5 {
		parts = append(parts, stream.React(fmt.Sprint("r", i), stream.Select{}, func(context.Context, *stream.Delivery) error { return nil }, stream.Options{}))
	}
	hf := s.node(t, parts...)
	appendTo(t, hf, "s", "x")
	watch, err := pgx.Connect(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close(context.Background())
	if _, err := watch.Exec(t.Context(), `CREATE EXTENSION IF NOT EXISTS pg_stat_statements`); err != nil {
		t.Fatal(err)
	}
	statements := func() (n int) {
		err := watch.QueryRow(t.Context(), `SELECT coalesce(sum(s.calls), 0)::int FROM pg_stat_statements s
			JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database() AND s.query NOT LIKE '%pg_stat_statements%'`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	_ = clock.Wait(t.Context(), 5*time.Second) // it becomes idle
	begun, before := clock.Now(), statements()
	_ = clock.Wait(t.Context(), 10*time.Second) // includes a sweep
	n, took := statements()-before, clock.Since(begun)
	t.Logf("%d queries in %s", n, took.Round(time.Millisecond))
	rows, _ := watch.Query(t.Context(), `SELECT s.calls || ' ' || left(s.query, 90) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
		WHERE d.datname = current_database() ORDER BY s.calls DESC LIMIT 8`)
	most, _ := pgx.CollectRows(rows, pgx.RowTo[string])
	t.Logf("most frequent queries since the start: %q", most)
	if float64(n) > 2*took.Seconds() {
		t.Errorf("%d queries in %s, want at most two per second", n, took)
	}
}
