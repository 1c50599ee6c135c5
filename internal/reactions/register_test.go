package reactions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

// openTx is a transaction that is open while a reaction is registered.
type openTx struct {
	name  string
	level pgx.TxIsoLevel
	stale bool // through an engine that knows the registry from before
	early bool // it also appends before the registration
	tx    held
}

func openTransactions() (all []*openTx) {
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		for _, stale := range []bool{false, true} {
			for _, early := range []bool{false, true} {
				all = append(all, &openTx{name: fmt.Sprintf("%.4s-%t-%t", level, stale, early), level: level, stale: stale, early: early})
			}
		}
	}
	return all
}

// TestRegistrationMissesNoOpenTransaction covers transactions that begin before
// reactions are registered and commit long after: in READ COMMITTED and REPEATABLE READ,
// through the engine that registers and through another, with appends before and after
// the registration, to existing and to new streams. It verifies that no reaction, from
// the beginning or with FromNow, misses any of their events, that the registration is
// not settled before they have ended, and that another node settles it.
func TestRegistrationMissesNoOpenTransaction(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	a, b, c := s.open(t), s.open(t), s.open(t)
	appendTo(t, b, "warm", "w") // b knows the registry
	all := openTransactions()
	for _, x := range all {
		appendTo(t, a, "old-"+x.name, "before")
		hf := a
		if x.stale {
			hf = b
		}
		x.tx = s.hold(t, hf, x.level)
		if x.early {
			appendTo(t, x.tx.tx, "old-"+x.name, "early")
			appendTo(t, x.tx.tx, "new-"+x.name, "early")
		}
	}
	whole, now := define("whole", ""), define("now", "^(old|new)-")
	now.FromNow = true
	var group sync.WaitGroup
	for _, d := range []reactions.Definition{whole, now} {
		group.Go(func() { register(t, a, d) })
	}
	group.Wait()
	var wantWhole, wantNow []string
	for _, x := range all {
		appendTo(t, x.tx.tx, "old-"+x.name, "late", "later")
		appendTo(t, x.tx.tx, "new-"+x.name, "late")
		names := []string{"before", "late", "later"}
		fresh := []string{"late"}
		if x.early {
			names, fresh = []string{"before", "early", "late", "later"}, []string{"early", "late"}
		}
		for v, n := range names {
			wantWhole = append(wantWhole, fmt.Sprint("old-", x.name, " ", v, " ", n))
			if v > 0 {
				wantNow = append(wantNow, fmt.Sprint("old-", x.name, " ", v, " ", n))
			}
		}
		for v, n := range fresh {
			wantWhole = append(wantWhole, fmt.Sprint("new-", x.name, " ", v, " ", n))
			wantNow = append(wantNow, fmt.Sprint("new-", x.name, " ", v, " ", n))
		}
	}
	gotWhole, gotNow := drain(t, c, whole), drain(t, c, now)
	for i, x := range all {
		for _, d := range []string{"whole", "now"} {
			if settled(t, c, d) {
				t.Fatalf("registration %s is settled while %d earlier transactions are open", d, len(all)-i)
			}
		}
		x.tx.commit(t)
		sweep(t, c)
		gotWhole, gotNow = append(gotWhole, drain(t, c, whole)...), append(gotNow, drain(t, c, now)...)
	}
	testkit.Eventually(t, "the registrations are settled", func() bool {
		sweep(t, c)
		return settled(t, c, "whole") && settled(t, c, "now")
	})
	gotWhole, gotNow = append(gotWhole, drain(t, c, whole)...), append(gotNow, drain(t, c, now)...)
	wantWhole = append(wantWhole, "warm 0 w")
	sameEvents(t, "from the beginning", gotWhole, wantWhole)
	sameEvents(t, "from now on", gotNow, wantNow)
}

// sameEvents compares the delivered events with the expected ones, and checks the order
// on each stream.
func sameEvents(t *testing.T, what string, got, want []string) {
	t.Helper()
	ordered := map[string]int64{}
	for _, g := range got {
		var name string
		var version int64
		if _, err := fmt.Sscan(g, &name, &version); err != nil {
			t.Fatal(err)
		}
		if last, ok := ordered[name]; ok && version <= last {
			t.Errorf("%s: %s was delivered after version %d", what, g, last)
		}
		ordered[name] = version
	}
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// TestAnotherNodeFinishesARegistration verifies that a registration whose node crashes,
// before or after it has recorded the transactions that it waits for, is finished by
// another node and misses nothing.
func TestAnotherNodeFinishesARegistration(t *testing.T) {
	for _, noted := range []bool{true, false} {
		t.Run(fmt.Sprintf("noted=%t", noted), func(t *testing.T) {
			t.Parallel()
			s := testDB{url: holdfasttest.PostgreSQL(t)}
			dying, err := holdfast.Open(context.Background(), s.database(), holdfast.Config{Log: discardLog()})
			if err != nil {
				t.Fatal(err)
			}
			other := s.open(t)
			appendTo(t, other, "warm", "w")
			open := s.hold(t, other, pgx.ReadCommitted)
			appendTo(t, open.tx, "s", "unknown")
			d := define("r", "^s$")
			registerUnsettled(t, dying, d)
			if !noted {
				s.must(t, dying, `UPDATE holdfast.reaction SET waits = NULL`)
			}
			if err := dying.Close(); err != nil {
				t.Fatal(err)
			}
			sweep(t, other)
			if settled(t, other, "r") {
				t.Fatal("the registration is settled while an earlier transaction is open")
			}
			same(t, "before the commit", drain(t, other, d), nil)
			open.commit(t)
			testkit.Eventually(t, "the other node settles the registration", func() bool { sweep(t, other); return settled(t, other, "r") })
			same(t, "after the commit", drain(t, other, d), []string{"s 0 unknown"})
		})
	}
}

// registerUnsettled registers a reaction that waits for a transaction. It cancels the
// wait soon, but not before the registration has come so far, which may take longer on a
// slow machine.
func registerUnsettled(t *testing.T, hf *holdfast.Engine, d reactions.Definition) {
	t.Helper()
	for limit := 300 * time.Millisecond; ; limit *= 2 {
		ctx, soon := context.WithTimeout(context.Background(), limit)
		_, err := reactions.Register(ctx, engine.Of(hf), d)
		soon()
		if err == nil {
			return
		}
		if !errors.Is(err, context.DeadlineExceeded) || limit > time.Minute {
			t.Fatal(err)
		}
	}
}

// TestARegistrationChangedWhileItIsNotedMissesNothing verifies that a reaction which is
// changed while the transactions of its registration are being recorded waits for those
// of the change: they are recorded as of after the commit of the change.
func TestARegistrationChangedWhileItIsNotedMissesNothing(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	a, b := s.open(t), s.open(t)
	narrow, wide := define("r", "", "x"), define("r", "")
	register(t, a, narrow)
	appendTo(t, b, "warm", "y") // b knows the narrow definition
	s.must(t, a, `UPDATE holdfast.reaction SET state = 'waiting', waits = NULL`)
	change := s.hold(t, a, pgx.ReadCommitted) // like a node that registers the wide definition
	for _, text := range []string{`UPDATE holdfast.registry SET revision = revision + 1`,
		`UPDATE holdfast.reaction SET events = '["*"]', state = 'waiting', waits = NULL`} {
		if _, err := change.Exec(context.Background(), text); err != nil {
			t.Fatal(err)
		}
	}
	finished := make(chan error, 1)
	go func() {
		_, err := reactions.Finish(context.Background(), engine.Of(a), store.Partition{Workspace: store.DefaultWorkspace}, "r")
		finished <- err
	}()
	testkit.Eventually(t, "the due notice waits for the change", func() bool {
		return s.texts(t, b, `SELECT count(*)::text FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`)[0] == "1"
	})
	open := s.hold(t, b, pgx.ReadCommitted)
	appendTo(t, open.tx, "s", "y") // the change is not committed, so no reaction selects it
	change.commit(t)
	if err := <-finished; err != nil {
		t.Fatal(err)
	}
	if settled(t, a, "r") {
		t.Error("the registration is settled while a transaction from before the change is open")
	}
	open.commit(t)
	testkit.Eventually(t, "the registration is settled", func() bool { sweep(t, a); return settled(t, a, "r") })
	if got := drain(t, a, wide); !slices.Contains(got, "s 0 y") {
		t.Errorf("s 0 y was not delivered: %q", got)
	}
}

// TestAPreparedTransactionIsWaitedFor verifies that a registration waits for a
// transaction which was in flight at the registration and was prepared for two-phase
// commit after it, until it is committed.
func TestAPreparedTransactionIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := testDB{url: holdfasttest.PostgreSQL(t)}
	hf := s.open(t)
	if s.texts(t, hf, `SELECT current_setting('max_prepared_transactions')`)[0] == "0" {
		t.Skipf("the server that %s names has no prepared transactions (max_prepared_transactions = 0)", pgtest.EnvURL)
	}
	d := define("r", "^s$")
	appendTo(t, hf, "warm", "w")
	open := s.hold(t, hf, pgx.ReadCommitted)
	appendTo(t, open.tx, "s", "e")
	registerUnsettled(t, hf, d)
	conn := open.Conn()
	if _, err := conn.Exec(context.Background(), `PREPARE TRANSACTION 'two-phase'`); err != nil {
		t.Fatal(err)
	}
	sweep(t, hf)
	early := settled(t, hf, "r")
	if _, err := conn.Exec(context.Background(), `COMMIT PREPARED 'two-phase'`); err != nil {
		t.Fatal(err)
	}
	if early {
		t.Error("the registration is settled while an earlier transaction is prepared")
	}
	testkit.Eventually(t, "the registration is settled", func() bool { sweep(t, hf); return settled(t, hf, "r") })
	same(t, "after the commit", drain(t, hf, d), []string{"s 0 e"})
}

// TestFiltersChooseEventsAndStreams verifies that a reaction gets only the events and
// streams that it selects, and that it continues from its positions when its filter is
// widened: later events are not skipped, none is repeated, and new streams start at
// their first event.
func TestFiltersChooseEventsAndStreams(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s testDB) {
		hf := s.open(t)
		narrow := define("r", "^a-", "x")
		register(t, hf, narrow)
		appendTo(t, hf, "a-1", "x", "y", "x", "y", "y")
		appendTo(t, hf, "b-1", "x", "y")
		appendTo(t, hf, "a-2", "y")
		same(t, "narrow", drain(t, hf, narrow), []string{"a-1 0 x", "a-1 2 x"})
		appendTo(t, hf, "a-1", "y", "y")
		appendTo(t, hf, "a-3", "x") // due, and not taken yet
		wide := define("r", "^(a|b)-", "x", "y")
		register(t, hf, wide)
		appendTo(t, hf, "b-1", "z", "x")
		got := drain(t, hf, wide)
		for _, w := range []string{"a-3 0 x", "b-1 0 x", "b-1 1 y", "b-1 3 x", "a-2 0 y", "a-1 5 y", "a-1 6 y"} {
			if !slices.Contains(got, w) {
				t.Errorf("%s was not delivered after the filter was widened: %q", w, got)
			}
		}
		for _, n := range []string{"a-1 0 x", "a-1 2 x", "b-1 2 z"} {
			if slices.Contains(got, n) {
				t.Errorf("%s was delivered after the filter was widened", n)
			}
		}
		register(t, hf, narrow)
		appendTo(t, hf, "a-1", "y", "x")
		appendTo(t, hf, "b-1", "x")
		same(t, "narrow again", drain(t, hf, narrow), []string{"a-1 8 x"})
	})
}

// TestWideningAReactionFromNowOnKeepsWhatIsDue verifies that an event appended after a
// reaction with FromNow was registered is delivered, although the filter is widened
// before the first take.
func TestWideningAReactionFromNowOnKeepsWhatIsDue(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s testDB) {
		hf := s.open(t)
		d := define("r", "", "x")
		d.FromNow = true
		register(t, hf, d)
		appendTo(t, hf, "new", "x")
		d.Events = []string{"x", "y"}
		register(t, hf, d)
		same(t, "after it was widened", drain(t, hf, d), []string{"new 0 x"})
	})
}

// TestANodeWithANarrowerReactionSkipsNothing verifies that each event of a widened
// filter is delivered in order during a rolling update, while old nodes serve the
// narrower filter alone or beside a new one.
func TestANodeWithANarrowerReactionSkipsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		var y deliveryLog
		part := func(names ...string) holdfast.Part {
			return stream.React("r", stream.Select{Events: names}, func(_ context.Context, d *stream.Delivery) error {
				y.write(d)
				return nil
			}, stream.Options{})
		}
		old := startNode(t, databaseAt(db), briskly, part("x"))
		next := openNode(t, databaseAt(db), briskly, part("x", "y"))
		emit(t, next, "s", "y", "x")
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second) // more than a poll interval; the old node may ignore it
		defer cancel()
		for p := positionOf(t, next, "r", "s"); p == nil || !handled(1)(*p); p = positionOf(t, next, "r", "s") {
			if clock.Wait(ctx, 20*time.Millisecond) != nil {
				break
			}
		}
		next.start(t)
		waitForPosition(t, next, "r", "s", "is done beside the old node", handled(1))
		old.stop()
		emit(t, next, "s", "x")
		waitForPosition(t, next, "r", "s", "is done", handled(2))
		if versions, _, _ := y.of("s"); !slices.Equal(versions, []stream.Version{0, 1, 2}) {
			t.Errorf("delivered %v, want 0, 1 and 2", versions)
		}
	})
}

// TestAReactionMadeAgainIsAnother verifies that a reaction which is removed and
// registered again under its name starts from scratch, that a holder of the old one can
// neither record nor renew, and that the new one can be blocked where the old one was.
func TestAReactionMadeAgainIsAnother(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s testDB) {
		ctx, hf, other := context.Background(), s.open(t), s.open(t)
		d := define("r", "")
		register(t, hf, d)
		appendTo(t, hf, "a", "x", "x")
		appendTo(t, hf, "b", "x")
		appendTo(t, other, "warm", "x")
		old := take(t, hf, d, 100)
		if len(old) != 3 {
			t.Fatalf("took %d streams, want 3", len(old))
		}
		poison := func(l *reactions.Lease) error {
			return reactions.Block(ctx, engine.Of(hf), l, -1, 0, "poison", 1, true)
		}
		b := slices.IndexFunc(old, func(l *reactions.Lease) bool { return l.Stream == "b" })
		if err := poison(old[b]); err != nil {
			t.Fatal(err)
		}
		appendTo(t, other, "a", "x") // a due notice that was not collected
		if yes, err := reactions.Remove(ctx, engine.Of(hf), "r"); err != nil || !yes {
			t.Fatal(yes, err)
		}
		if yes, err := reactions.Remove(ctx, engine.Of(other), "r"); err != nil || yes {
			t.Errorf("second removal returned %t, error %v, want false", yes, err)
		}
		testkit.Eventually(t, "the reaction is removed", func() bool {
			sweep(t, hf)
			table := map[bool]string{true: "holdfast.reaction", false: "holdfast_reaction"}[s.postgres()]
			return len(s.texts(t, hf, `SELECT name FROM `+table)) == 0
		})
		appendTo(t, other, "a", "unmarked")
		same(t, "while it is removed", drain(t, hf, d), nil)
		if created, err := reactions.Register(ctx, engine.Of(other), d); err != nil || !created {
			t.Fatal(created, err)
		}
		for _, l := range old {
			end, err := reactions.Ack(ctx, engine.Of(hf), []reactions.End{{Lease: l, Done: l.Handled()}})
			if err != nil || end[0].Recorded {
				t.Errorf("the old holder of %s recorded its end: error %v", l.Stream, err)
			}
			if kept, err := reactions.Renew(ctx, engine.Of(hf), []*reactions.Lease{l}, func(*reactions.Lease) time.Duration { return time.Hour }); err != nil || !kept[0].Until.IsZero() {
				t.Errorf("the old holder of %s renewed its lease: error %v", l.Stream, err)
			}
			if err := poison(l); fault.CodeOf(err) != fault.LeaseLost {
				t.Errorf("the old holder of %s blocked it: got error %v, want LEASE_LOST", l.Stream, err)
			}
		}
		again := take(t, other, d, 100)
		if len(again) != 3 {
			t.Fatalf("took %d streams after the reaction was registered again, want 3", len(again))
		}
		for i, l := range again {
			if l.Watermark != -1 || l.Events[0].Version != 0 || l.Epoch <= old[i].Epoch {
				t.Errorf("%s starts at %d with epoch %d", l.Stream, l.Watermark, l.Epoch)
			}
		}
		b = slices.IndexFunc(again, func(l *reactions.Lease) bool { return l.Stream == "b" })
		if err := poison(again[b]); err != nil {
			t.Errorf("a stream that was blocked before the removal cannot be blocked again: %v", err)
		}
	})
}

// histories writes to histories in every possible way, by one caller and by many at
// once, and returns the streams that it wrote to.
func histories(t *testing.T, d holdfast.Doer, tag string) (streams []string) {
	t.Helper()
	ctx := context.Background()
	n := 8
	if _, ok := d.(*holdfast.Engine); !ok {
		n = 1 // only one goroutine uses a transaction
	}
	var mu sync.Mutex
	one := func(i int) error {
		id := fmt.Sprint(tag, "-", i)
		_, e1 := entities.Create(ctx, store.DoerOf(d), entities.CreateArgs{Lifecycle: "inv", ID: id, Status: "a"})
		_, e2 := entities.Transition(ctx, store.DoerOf(d), entities.TransitionArgs{Lifecycle: "inv", ID: id, From: []string{"a"}, To: "b", Event: "moved"})
		_, e3 := entities.Transition(ctx, store.DoerOf(d), entities.TransitionArgs{Lifecycle: "inv", ID: id, From: []string{"b", "c"}, To: "c", Event: "moved"})
		_, e4 := scopestore.Put(ctx, store.DoerOf(d), scopestore.PutArgs{Kind: "k", ID: id, State: []byte(`{}`)})
		_, e5 := scopestore.Put(ctx, store.DoerOf(d), scopestore.PutArgs{Kind: "k", ID: id, State: []byte(`{"n":1}`)})
		_, e6 := scopestore.Delete(ctx, store.DoerOf(d), scopestore.DeleteArgs{Kind: "k", ID: id})
		_, e7 := storetest.Inc(ctx, d, storetest.IncArgs{Kind: "sum", ID: tag, Field: "n", By: 1}) // one row for all
		_, e8 := storetest.Inc(ctx, d, storetest.IncArgs{Kind: "sum", ID: tag, Field: "n", By: 1})
		mu.Lock()
		defer mu.Unlock()
		streams = append(streams, entities.Stream("inv", id), scopestore.Stream("k", id))
		return errors.Join(e1, e2, e3, e4, e5, e6, e7, e8)
	}
	if _, lost := holdfasttest.Race(t, n, one); len(lost) > 0 {
		t.Fatalf("%s: %v", tag, errors.Join(lost...))
	}
	return append(streams, scopestore.Stream("sum", tag))
}

// TestHistoriesAreFollowed verifies that reactions over histories get every event of
// entities and scopes and no event of user streams. The events are written by one caller
// and by many, alone, in a transaction and in the user's own, with the short and the
// general form of each statement, and from nodes that knew the registry before the
// reaction and from one that did not.
func TestHistoriesAreFollowed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s testDB) {
		stale := s.open(t)
		streams := histories(t, stale, "before")
		appendTo(t, stale, "users", "x")
		all, some := define("all", `^\$`), define("some", `^\$entity/inv/`, "moved")
		fresh := s.open(t)
		register(t, fresh, all)
		register(t, fresh, some)
		late := define("late", `^\$scope/`)
		late.FromNow = true
		register(t, fresh, late)
		skipped := len(streams)
		streams = append(streams, histories(t, stale, "stale")...)
		streams = append(streams, histories(t, fresh, "fresh")...)
		plain := holdfasttest.OpenOn(t, store.Plain(s.database()))
		streams = append(streams, histories(t, plain, "plain")...)
		for i, hf := range []*holdfast.Engine{s.open(t), stale} {
			err := hf.Update(context.Background(), func(_ context.Context, tx holdfast.Tx) error {
				streams = append(streams, histories(t, tx, fmt.Sprint("tx", i))...)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if s.postgres() {
			own := s.hold(t, fresh, pgx.ReadCommitted)
			streams = append(streams, histories(t, own.tx, "joined")...)
			own.commit(t)
		}
		var want, wantSome, wantLate []string
		for i, name := range streams {
			events, err := holdfast.Collect(stream.Read(context.Background(), fresh, name, 0))
			if err != nil || len(events) == 0 {
				t.Fatalf("%s: got %d events, error %v", name, len(events), err)
			}
			for _, e := range events {
				one := fmt.Sprint(name, " ", e.Version, " ", e.Name)
				want = append(want, one)
				if name[:8] == "$entity/" && e.Name == "moved" {
					wantSome = append(wantSome, one)
				}
				if name[:8] != "$entity/" && i >= skipped {
					wantLate = append(wantLate, one)
				}
			}
		}
		sameEvents(t, "all", drain(t, fresh, all), want)
		sameEvents(t, "some", drain(t, fresh, some), wantSome)
		sameEvents(t, "from now on", drain(t, fresh, late), wantLate)
	})
}

// TestAStaleNodeMarks verifies that all appends of a node with an outdated registry are
// delivered: alone, many at once, in a transaction, in the user's own, to new streams
// and to old ones.
func TestAStaleNodeMarks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s testDB) {
		ctx, stale := context.Background(), s.open(t)
		for i := range 16 {
			appendTo(t, stale, fmt.Sprint("s", i), "x")
		}
		fresh := s.open(t)
		for round, how := range []func(name string) error{
			func(name string) error {
				_, err := stream.Append(ctx, stale, name, stream.Any, stream.Event{Name: "x"})
				return err
			},
			func(name string) error {
				return stale.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
					_, err := stream.Append(ctx, tx, name, stream.Any, stream.Event{Name: "x"}, stream.Event{Name: "x"})
					return err
				})
			},
		} {
			d := define(fmt.Sprint("r", round), "")
			d.FromNow = true
			register(t, fresh, d) // raises the revision
			if _, lost := holdfasttest.Race(t, 32, func(i int) error { return how(fmt.Sprint("s", i)) }); len(lost) > 0 {
				t.Fatal(errors.Join(lost...))
			}
			got := map[string]bool{}
			for _, g := range drain(t, fresh, d) {
				got[g[:len(g)-len(" 0 x")]] = true
			}
			if len(got) != 32 {
				t.Errorf("round %d: %d of 32 streams were delivered", round, len(got))
			}
		}
	})
}
