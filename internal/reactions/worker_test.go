package reactions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// onEach is [storetest.OnEach], with names under which another process can open the databases too.
func onEach(t *testing.T, f func(t *testing.T, db string)) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, db string) {
		if !strings.Contains(db, "://") {
			db = "sqlite:" + db
		}
		f(t, db)
	})
}

func databaseAt(name string) holdfast.Database {
	return holdfasttest.At(strings.TrimPrefix(name, "sqlite:"))
}

// node is a running engine.
type node struct {
	*holdfast.Engine
	stop func() // ends Run and waits for it; a second call is harmless
}

// startNode opens an engine and runs it. When the test ends, the engine is stopped, the
// database is checked, and the engine is closed.
func startNode(t *testing.T, db holdfast.Database, c holdfast.Config, parts ...holdfast.Part) *node {
	t.Helper()
	n := openNode(t, db, c, parts...)
	n.start(t)
	return n
}

// start runs the engine until it is stopped or the test ends.
func (n *node) start(t *testing.T) { n.stop = testkit.Run(t, n.Engine) }

func openNode(t *testing.T, db holdfast.Database, c holdfast.Config, parts ...holdfast.Part) *node {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	hf, err := holdfast.Open(context.Background(), db, c, parts...)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		report, err := hf.Check(context.Background())
		if err == nil && !report.Clean() {
			t.Errorf("the test left a database with violations:\n%s", report)
		}
		if err := hf.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &node{Engine: hf, stop: func() {}}
}

var briskly = holdfast.Config{SweepEvery: 100 * time.Millisecond}

// emit appends events with these names.
func emit(t testing.TB, d holdfast.Doer, name string, events ...string) {
	t.Helper()
	var all []stream.Event
	for _, e := range events {
		all = append(all, stream.Event{Name: e})
	}
	if _, err := stream.Append(context.Background(), d, name, stream.Any, all...); err != nil {
		t.Fatalf("append to %s: %v", name, err)
	}
}

// positionOf returns the position of a reaction on a stream, or nil.
func positionOf(t testing.TB, d holdfast.Doer, reaction, name string) *stream.Position {
	t.Helper()
	all, err := holdfast.Collect(stream.ListPositions(context.Background(), d, stream.PositionFilter{Reaction: reaction, Streams: []string{name}}))
	if err != nil {
		t.Fatalf("query: %v", err)
	}
	if len(all) == 0 {
		return nil
	}
	return &all[0]
}

// waitForPosition waits until a reaction's position on a stream meets a condition.
func waitForPosition(t testing.TB, d holdfast.Doer, reaction, name, what string, so func(stream.Position) bool) stream.Position {
	t.Helper()
	var last *stream.Position
	defer func() {
		if t.Failed() {
			t.Logf("%s on %s: %+v", reaction, name, last)
		}
	}()
	testkit.Eventually(t, fmt.Sprintf("%s on %s %s", reaction, name, what), func() bool {
		last = positionOf(t, d, reaction, name)
		return last != nil && so(*last)
	})
	return *last
}

func handled(version stream.Version) func(stream.Position) bool {
	return func(p stream.Position) bool { return p.Watermark >= version && p.Holder == "" }
}

func blocked(p stream.Position) bool { return p.Blocked }

func databaseTime(t testing.TB, hf *holdfast.Engine) time.Time {
	t.Helper()
	s, err := hf.Status(context.Background())
	if err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("status: %v", err)
	}
	return s.Now
}

// historyOf reads the names and the data of a reaction's history on a stream.
func historyOf(t testing.TB, d holdfast.Doer, reaction, name string) (names []string, data []map[string]any) {
	t.Helper()
	all, err := holdfast.Collect(stream.Read(context.Background(), d, reactions.Stream(reaction, name), 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		var said map[string]any
		if err := json.Unmarshal(e.Data, &said); err != nil {
			t.Fatalf("history %s: %v", e.Data, err)
		}
		names, data = append(names, e.Name), append(data, said)
	}
	return names, data
}

// deliveryLog records the deliveries.
type deliveryLog struct {
	mu   sync.Mutex
	seen []stream.Delivery
}

func (y *deliveryLog) write(d *stream.Delivery) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.seen = append(y.seen, *d)
	n := 0
	for _, s := range y.seen {
		if s.Stream == d.Stream && s.Version == d.Version {
			n++
		}
	}
	return n
}

// of returns the delivered versions of a stream, in the order of delivery.
func (y *deliveryLog) of(name string) (versions []stream.Version, attempts []int, operations []string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, s := range y.seen {
		if s.Stream == name {
			versions, attempts, operations = append(versions, s.Version), append(attempts, s.Attempt), append(operations, s.Operation)
		}
	}
	return versions, attempts, operations
}

// lasting is a policy whose pauses do not grow; 0 attempts is the default.
func lasting(attempts int, pause time.Duration) holdfast.RetryPolicy {
	return holdfast.RetryPolicy{MaxAttempts: attempts, Backoff: pause, Multiplier: 1, MaxBackoff: pause}
}

// TestAFailureIsTriedAgainByTheDatabasesTime verifies that a failed event is retried as
// the same operation, not before its pause is over by the database's time, and then
// without a wake-up; and that the failure count is reset once it succeeds.
func TestAFailureIsTriedAgainByTheDatabasesTime(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		var y deliveryLog
		var hf *node
		var due atomic.Int64 // time before which it must not be retried
		part := stream.React("r", stream.Select{}, func(_ context.Context, d *stream.Delivery) error {
			if now := databaseTime(t, hf.Engine).UnixMilli(); now < due.Load() {
				t.Errorf("the retry came %d ms early", due.Load()-now)
			}
			if y.write(d) < 3 {
				return errors.New("not yet")
			}
			return nil
		}, stream.Options{Retry: lasting(0, time.Hour)})
		hf = openNode(t, databaseAt(db), briskly, part)
		emit(t, hf, "s", "e")
		hf.start(t)
		for n := 1; n <= 2; n++ {
			p := waitForPosition(t, hf, "r", "s", "has failed", func(p stream.Position) bool { return p.Failures == n && p.Holder == "" })
			due.Store(p.DueAt.UnixMilli())
			in := p.DueAt.Sub(databaseTime(t, hf.Engine))
			if in < 29*time.Minute || in > time.Hour || p.Failing != 0 || p.Error != "not yet" {
				t.Errorf("after %d failures the stream is due in %s: %+v", n, in, p)
			}
			holdfasttest.Advance(t, hf.Engine, in-2*time.Minute)
			early := takeByHand(t, hf, "r")
			if len(early) != 0 {
				t.Fatalf("the stream was taken two minutes early: %+v", early[0])
			}
			holdfasttest.Advance(t, hf.Engine, 3*time.Minute)
		}
		p := waitForPosition(t, hf, "r", "s", "is handled", handled(0))
		if p.Failures != 0 || p.Failing != -1 || p.Error != "" {
			t.Errorf("at the end the position is %+v", p)
		}
		_, attempts, operations := y.of("s")
		if !slices.Equal(attempts, []int{1, 2, 3}) || operations[0] != operations[1] || operations[1] != operations[2] {
			t.Errorf("got attempts %v, operations %v", attempts, operations)
		}
	})
}

// takeByHand takes and reads streams like a worker.
func takeByHand(t testing.TB, d holdfast.Doer, names ...string) []*reactions.Lease {
	t.Helper()
	return takeSome(t, d, 100, 100, names...)
}

func takeSome(t testing.TB, d holdfast.Doer, limit, crashed int, names ...string) []*reactions.Lease {
	t.Helper()
	ctx := context.Background()
	a := reactions.TakeArgs{Holder: "hand", Limit: limit, Crashed: crashed}
	for _, n := range names {
		a.Reactions = append(a.Reactions, reactions.Wanted{Name: n, Lease: time.Minute})
	}
	if _, err := reactions.CollectDue(ctx, store.DoerOf(d), store.Partition{}, names); err != nil {
		t.Fatal(err)
	}
	leases, err := reactions.Take(ctx, store.DoerOf(d), a)
	if err != nil {
		t.Fatal(err)
	}
	if err := reactions.LoadEvents(ctx, store.DoerOf(d), store.StreamEvents, leases, func(*reactions.Lease) []string { return nil }, 100); err != nil {
		t.Fatal(err)
	}
	return leases
}

// TestHowABodyEnds verifies the result of each end of a body: errors and panics are
// retried up to the limit and then block the stream, right after the last handled event;
// a final error blocks at once; a deferral is no failure; and other streams are not
// affected.
func TestHowABodyEnds(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		var y deliveryLog
		body := func(_ context.Context, d *stream.Delivery) error {
			n := y.write(d)
			if d.Version != 1 {
				return nil
			}
			switch d.Stream {
			case "throws":
				return errors.New("no \x00 \xff")
			case "panics":
				panic("ouch")
			case "final":
				return fmt.Errorf("wrapped: %w", holdfast.NonRetryable(errors.New("never")))
			case "silent":
				return errors.New("")
			case "later":
				if n < 3 {
					return fmt.Errorf("wrapped: %w", stream.Snooze(time.Millisecond))
				}
			}
			return nil
		}
		hf := startNode(t, databaseAt(db), briskly, stream.React("r", stream.Select{}, body,
			stream.Options{Retry: lasting(3, time.Millisecond)}))
		bad := []string{"throws", "panics", "final", "silent", "later"}
		for i := range 20 {
			emit(t, hf, fmt.Sprint("fine-", i), "a", "b", "c")
		}
		for _, name := range bad {
			emit(t, hf, name, "a", "b", "c")
		}
		for i := range 20 {
			if p := waitForPosition(t, hf, "r", fmt.Sprint("fine-", i), "is done", handled(2)); p.Failures+p.Crashes != 0 {
				t.Errorf("got position %+v", p)
			}
		}
		for name, want := range map[string]struct {
			runs  int
			error string
		}{"throws": {3, "no \uFFFD \uFFFD"}, "panics": {3, "panic: ouch"}, "final": {1, "wrapped: never"}, "silent": {3, "failed without an error message"}} {
			p := waitForPosition(t, hf, "r", name, "is blocked", blocked)
			versions, _, _ := y.of(name)
			if len(versions) != want.runs+1 || slices.Contains(versions, 2) {
				t.Errorf("%s: delivered %v", name, versions)
			}
			if p.Watermark != 0 || p.Failing != 1 || p.Failures != want.runs || p.Error != want.error || p.Holder != "" {
				t.Errorf("%s: got position %+v", name, p)
			}
			if names, data := historyOf(t, hf, "r", name); !slices.Equal(names, []string{"blocked"}) || data[0]["version"] != 1.0 || data[0]["error"] != want.error {
				t.Errorf("%s: got history %v %v", name, names, data)
			}
		}
		p := waitForPosition(t, hf, "r", "later", "is done", handled(2))
		if versions, attempts, _ := y.of("later"); p.Failures != 0 || !slices.Equal(versions, []stream.Version{0, 1, 1, 1, 2}) ||
			slices.ContainsFunc(attempts, func(n int) bool { return n != 1 }) {
			t.Errorf("snoozed: delivered %v, attempts %v: %+v", versions, attempts, p)
		}
	})
}

// TestADeferralLasts verifies that a deferral counts no failure and lasts by the
// database's time, and that earlier events of the lease stay acknowledged.
func TestADeferralLasts(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		var y deliveryLog
		hf := startNode(t, databaseAt(db), briskly, stream.React("r", stream.Select{}, func(_ context.Context, d *stream.Delivery) error {
			if y.write(d) == 1 && d.Version == 2 {
				return stream.Snooze(time.Hour)
			}
			return nil
		}, stream.Options{}))
		emit(t, hf, "s", "a", "b", "c")
		p := waitForPosition(t, hf, "r", "s", "is deferred", handled(1))
		if in := p.DueAt.Sub(databaseTime(t, hf.Engine)); in < 59*time.Minute || in > time.Hour || p.Failures != 0 || p.Error != "" {
			t.Errorf("due in %s: %+v", in, p)
		}
		emit(t, hf, "s", "d") // does not bring it forward
		emit(t, hf, "other", "a")
		waitForPosition(t, hf, "r", "other", "is done", handled(0))
		holdfasttest.Advance(t, hf.Engine, time.Hour)
		waitForPosition(t, hf, "r", "s", "is done", handled(3))
		if versions, attempts, _ := y.of("s"); !slices.Equal(versions, []stream.Version{0, 1, 2, 2, 3}) || slices.Max(attempts) != 1 {
			t.Errorf("delivered %v, attempts %v", versions, attempts)
		}
	})
}

// TestSkipOnErrorGoesOnAndTells verifies that a permanently failed event is skipped if
// the reaction's options say so, that the history records it, and that the events after
// it are delivered.
func TestSkipOnErrorGoesOnAndTells(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		var y deliveryLog
		hf := startNode(t, databaseAt(db), briskly, stream.React("r", stream.Select{}, func(_ context.Context, d *stream.Delivery) error {
			y.write(d)
			if d.Version == 1 {
				return errors.New("no")
			}
			return nil
		}, stream.Options{SkipOnError: true, Retry: lasting(2, time.Millisecond)}))
		emit(t, hf, "s", "a", "b", "c")
		p := waitForPosition(t, hf, "r", "s", "is done", handled(2))
		versions, attempts, _ := y.of("s")
		if !slices.Equal(versions, []stream.Version{0, 1, 1, 2}) || !slices.Equal(attempts, []int{1, 1, 2, 1}) || p.Blocked || p.Failures != 0 || p.Failing != -1 || p.Error != "" {
			t.Errorf("delivered %v, attempts %v: %+v", versions, attempts, p)
		}
		if names, data := historyOf(t, hf, "r", "s"); !slices.Equal(names, []string{"skipped"}) || data[0]["version"] != 1.0 || data[0]["error"] != "no" {
			t.Errorf("got history %v %v", names, data)
		}
	})
}

// TestAFailureKeepsWhatWentBefore verifies, with bodies that commit and with bodies that
// do not, that a failure leaves earlier events of the lease acknowledged, and that the
// failures of one event do not count for the next.
func TestAFailureKeepsWhatWentBefore(t *testing.T) {
	for _, commits := range []bool{false, true} {
		t.Run(fmt.Sprint("commits ", commits), func(t *testing.T) {
			onEach(t, func(t *testing.T, db string) {
				var y deliveryLog
				hf := openNode(t, databaseAt(db), briskly, stream.React("r", stream.Select{Pattern: "^s$"}, func(_ context.Context, d *stream.Delivery) error {
					n := y.write(d)
					if commits {
						d.WriteTx(writeOut(d, "w"))
					}
					if (d.Version == 4 || d.Version == 5 || d.Version == 7) && n < 3 {
						return errors.New("no")
					}
					return nil
				}, stream.Options{Retry: lasting(3, 20*time.Millisecond)}))
				var seen []string // one stream, so one at a time
				engine.Of(hf).Reactions().Trace = func(c reactions.TraceEvent) {
					if c.What == "failed" {
						seen = append(seen, fmt.Sprint(c.Version))
					}
				}
				emit(t, hf, "s", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
				hf.start(t)
				waitForPosition(t, hf, "r", "s", "is done", handled(9))
				hf.stop()
				if !slices.Equal(seen, []string{"3", "3", "4", "4", "6", "6"}) {
					t.Errorf("watermarks of the failures are %v", seen)
				}
				versions, attempts, _ := y.of("s")
				if !slices.Equal(versions, []stream.Version{0, 1, 2, 3, 4, 4, 4, 5, 5, 5, 6, 7, 7, 7, 8, 9}) ||
					!slices.Equal(attempts, []int{1, 1, 1, 1, 1, 2, 3, 1, 2, 3, 1, 1, 2, 3, 1, 1}) {
					t.Errorf("delivered %v, attempts %v", versions, attempts)
				}
				if commits {
					wantOut(t, hf, "s", 10)
				}
			})
		})
	}
}

// writeOut records in a table which node handled an event.
func writeOut(d *stream.Delivery, by string) func(context.Context, holdfast.Tx) error {
	return func(ctx context.Context, tx holdfast.Tx) error {
		_, err := stream.Append(ctx, tx, "out-"+d.Stream, stream.Any, stream.Event{Name: fmt.Sprint(d.Version), Actor: by})
		return err
	}
}

// wantOut checks that each of n events was recorded once, in order.
func wantOut(t testing.TB, d holdfast.Doer, name string, n int) (by []string) {
	t.Helper()
	var names, want []string
	for {
		all, err := holdfast.Collect(stream.Read(context.Background(), d, "out-"+name, stream.Version(len(names))))
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			break
		}
		for _, e := range all {
			names, by = append(names, e.Name), append(by, e.Actor)
		}
	}
	for v := range n {
		want = append(want, fmt.Sprint(v))
	}
	if !slices.Equal(names, want) {
		t.Errorf("%s: recorded events %v, want %v", name, names, want)
	}
	return by
}

// faultyDatabase wraps a database and injects faults into its commits.
type faultyDatabase struct {
	store.Database
	// before runs before the commit of a transaction that ran this command, and after runs
	// after it. An error of before rolls the transaction back.
	command       string
	before, after func() error
}

type faultyStore struct {
	store.Store
	m *faultyDatabase
}

func (m *faultyDatabase) Open(ctx context.Context, o store.Options) (store.Store, error) {
	s, err := m.Database.Open(ctx, o)
	return &faultyStore{s, m}, err
}

func (s *faultyStore) Base() store.Store { return s.Store }

func (s *faultyStore) Update(ctx context.Context, f func(context.Context, store.Conn) error) error {
	var c *faultyConn
	err := s.Store.Update(ctx, func(ctx context.Context, conn store.Conn) error {
		c = &faultyConn{Conn: conn, name: s.m.command}
		if err := f(ctx, c); err != nil || !c.ran {
			return err
		}
		return s.m.before()
	})
	if err == nil && c.ran {
		return s.m.after()
	}
	return err
}

type faultyConn struct {
	store.Conn
	name string
	ran  bool
}

func (c *faultyConn) Unwrap() store.Conn { return c.Conn }
func (c *faultyConn) Run(ctx context.Context, cmd store.Command) error {
	c.ran = c.ran || cmd.Decl().Name == c.name
	return c.Conn.Run(ctx, cmd)
}

// once injects a fault the first time only, if there is one.
func once(strike func() error) func() error {
	var done atomic.Bool
	return func() error {
		if strike == nil || done.Swap(true) {
			return nil
		}
		return strike()
	}
}

// TestCommitAppliesOnceWithItsAcknowledgement verifies that the writes of a body and its
// acknowledgement commit together or not at all: if the closure fails after it has
// written, if the database fails, and if the response to the commit is lost, applied or
// not. In every case the writes apply once.
func TestCommitAppliesOnceWithItsAcknowledgement(t *testing.T) {
	lost := func() error { return fault.New(fault.OutcomeUnknown, "the answer was lost") }
	down := func() error { return fault.New(fault.Unavailable, "down") }
	for name, c := range map[string]struct {
		before, after, closure func() error // faults that strike once
		bodies, closures       int          // how often the event's body and closure run
	}{
		"the closure fails":                 {closure: down, bodies: 2, closures: 2},
		"the database fails":                {before: down, bodies: 2, closures: 2},
		"it must give way":                  {before: func() error { return fault.New(fault.Unavailable, "deadlock").AsRetryable() }, bodies: 1, closures: 2},
		"the answer is lost, and it is":     {after: lost, bodies: 1, closures: 1},
		"the answer is lost, and it is not": {before: lost, bodies: 1, closures: 2},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, db string) {
				closure := once(c.closure)
				m := &faultyDatabase{Database: store.DatabaseOf(databaseAt(db)), command: "reactions.ack", before: once(c.before), after: once(c.after)}
				var bodies, closures atomic.Int32
				hf := startNode(t, store.HandleDatabase(m), briskly, stream.React("r", stream.Select{Pattern: "^s$"}, func(_ context.Context, d *stream.Delivery) error {
					if d.Version == 0 {
						bodies.Add(1)
					}
					d.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
						if d.Version == 0 {
							closures.Add(1)
						}
						if err := writeOut(d, "w")(ctx, tx); err != nil {
							return err
						}
						return closure()
					})
					return nil
				}, stream.Options{Retry: lasting(0, time.Millisecond)}))
				emit(t, hf, "s", "a", "b")
				p := waitForPosition(t, hf, "r", "s", "is done", handled(1))
				if p.Failures != 0 || p.Crashes != 0 || p.Blocked {
					t.Errorf("got position %+v", p)
				}
				wantOut(t, hf, "s", 2)
				if int(bodies.Load()) != c.bodies || int(closures.Load()) != c.closures {
					t.Errorf("the body ran %d times, the closure %d times; want %d and %d", bodies.Load(), closures.Load(), c.bodies, c.closures)
				}
			})
		})
	}
}

// TestACommitUnderALostHoldWritesNothing verifies that a body whose lease was lost while
// it ran commits nothing: the writes of its closure are rolled back, and those of its
// successor apply once.
func TestACommitUnderALostHoldWritesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		other := openNode(t, databaseAt(db), briskly)
		var ran atomic.Int32
		var fenced atomic.Bool
		hf := startNode(t, databaseAt(db), holdfast.Config{SweepEvery: time.Hour}, stream.React("r", stream.Select{Pattern: "^s$"}, func(_ context.Context, d *stream.Delivery) error {
			first := ran.Add(1) == 1
			by := "second"
			if first {
				by = "first"
				holdfasttest.Advance(t, other.Engine, time.Hour)
				done, err := stream.Reset(context.Background(), other, "r", stream.PositionFilter{})
				fenced.Store(err == nil && len(done.Repaired) == 1 && len(done.Leased) == 0)
			}
			d.WriteTx(writeOut(d, by))
			return nil
		}, stream.Options{Lease: 30 * time.Second}))
		emit(t, hf, "s", "a")
		p := waitForPosition(t, hf, "r", "s", "is done", handled(0))
		if by := wantOut(t, hf, "s", 1); !slices.Equal(by, []string{"second"}) || !fenced.Load() || p.Generation != 1 || p.Failures != 0 {
			t.Errorf("got writers %v, fenced %t: %+v", by, fenced.Load(), p)
		}
	})
}

// TestASlowBodyKeepsItsHold verifies that a body which takes several times its lease
// keeps the lease while janitors sweep and another node polls, and that its event is
// handled once.
func TestASlowBodyKeepsItsHold(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		const lease = 1500 * time.Millisecond
		var ran atomic.Int32
		part := func() holdfast.Part {
			return stream.React("r", stream.Select{Pattern: "^s$"}, func(ctx context.Context, d *stream.Delivery) error {
				ran.Add(1)
				d.WriteTx(writeOut(d, "w"))
				return clock.Wait(ctx, 3*lease)
			}, stream.Options{Lease: lease})
		}
		hf := startNode(t, databaseAt(db), briskly, part())
		startNode(t, databaseAt(db), briskly, part())
		emit(t, hf, "s", "a")
		p := waitForPosition(t, hf, "r", "s", "is done", handled(0))
		if wantOut(t, hf, "s", 1); ran.Load() != 1 || p.Crashes != 0 || p.Failures != 0 {
			t.Errorf("ran %d times, want 1: %+v", ran.Load(), p)
		}
	})
}

// TestABodyThatHangsLosesItsStream verifies that a body which hangs beyond its timeout
// and ignores its context loses its stream to another node, that this counts as a crash
// and not as a failure, and that its late commit is refused.
func TestABodyThatHangsLosesItsStream(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		hung, release := make(chan struct{}, 10), make(chan struct{})
		free := sync.OnceFunc(func() { close(release) })
		t.Cleanup(free)
		back := make(chan struct{}, 10)
		part := func(by string) holdfast.Part {
			return stream.React("r", stream.Select{Pattern: "^s$"}, func(_ context.Context, d *stream.Delivery) error {
				d.WriteTx(writeOut(d, by))
				if by == "hangs" {
					hung <- struct{}{}
					<-release
					back <- struct{}{}
				}
				return nil
			}, stream.Options{Lease: time.Second, Timeout: 500 * time.Millisecond})
		}
		one := startNode(t, databaseAt(db), briskly, part("hangs"), stream.MaxWorkers(1)) // it has no capacity to take it again
		t.Cleanup(free)
		emit(t, one, "s", "a", "b")
		<-hung
		two := startNode(t, databaseAt(db), briskly, part("goes on"))
		p := waitForPosition(t, two, "r", "s", "is done", handled(1))
		free()
		<-back
		one.stop() // also ends its late body
		if by := wantOut(t, two, "s", 2); !slices.Equal(by, []string{"goes on", "goes on"}) || p.Failures != 0 {
			t.Errorf("got writers %v: %+v", by, p)
		}
	})
}

// TestStoppingGivesEverythingBack verifies that a stopping node waits for its bodies,
// counts nothing against them and releases its leases at once, begun or not: with leases
// of a day, another node does the rest. No goroutine is left.
func TestStoppingGivesEverythingBack(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) { // not in parallel, because goroutines are counted
			var db holdfast.Database // with connections of its own: those of holdfasttest.At stay open for the next test
			if kind == "postgres" {
				db = postgres.URL(holdfasttest.PostgreSQL(t))
			} else {
				db = sqlite.File(holdfasttest.SQLite(t))
			}
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, before) })
			begun := make(chan string, 100)
			var running atomic.Int32
			part := func(body func(context.Context, *stream.Delivery) error) holdfast.Part {
				return stream.React("r", stream.Select{}, body, stream.Options{Lease: 24 * time.Hour})
			}
			one := startNode(t, db, holdfast.Config{SweepEvery: time.Hour}, stream.MaxWorkers(4),
				part(func(ctx context.Context, d *stream.Delivery) error {
					if d.Version == 0 {
						return nil
					}
					running.Add(1)
					defer running.Add(-1)
					begun <- d.Stream
					<-ctx.Done()
					if d.Stream < "s-02" {
						return nil // it finished in time
					}
					return ctx.Err()
				}))
			for i := range 12 {
				emit(t, one, fmt.Sprintf("s-%02d", i), "a", "b")
			}
			for range 4 {
				<-begun
			}
			one.stop()
			if n := running.Load(); n != 0 {
				t.Errorf("%d handlers still run after the stop", n)
			}
			for i := range 12 {
				name := fmt.Sprintf("s-%02d", i)
				if p := positionOf(t, one, "r", name); p != nil && (p.Holder != "" || p.Failures+p.Crashes != 0) {
					t.Errorf("after the stop the position is %+v", *p)
				}
			}
			var y deliveryLog
			two := startNode(t, db, holdfast.Config{SweepEvery: time.Hour},
				part(func(_ context.Context, d *stream.Delivery) error { y.write(d); return nil }))
			for i := range 12 {
				waitForPosition(t, two, "r", fmt.Sprintf("s-%02d", i), "is done", handled(1))
			}
			two.stop()
		})
	}
}

// TestAWorkerOutlivesItsServer verifies that a worker continues by itself after its
// server was gone for a while, after a clean stop or a crash and with events in flight:
// every event is handled in order, and its commits apply once.
func TestAWorkerOutlivesItsServer(t *testing.T) {
	t.Parallel()
	testlevel.Long(t)
	server, err := pgtest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	var bodies atomic.Int64
	var gate atomic.Pointer[chan struct{}] // where bodies wait
	hf := startNode(t, postgres.URL(server.URL()), briskly, stream.React("r", stream.Select{Pattern: "^s"}, func(_ context.Context, d *stream.Delivery) error {
		bodies.Add(1)
		<-*gate.Load()
		d.WriteTx(writeOut(d, "w"))
		return nil
	}, stream.Options{Lease: 2 * time.Second, Retry: lasting(1001, 10*time.Millisecond)}))
	const streams, each = 8, 40
	for _, mode := range []string{"fast", "immediate"} {
		shut := make(chan struct{})
		gate.Store(&shut)
		goal := bodies.Load() + streams
		for i := range streams {
			names := make([]string, each)
			for v := range names {
				names[v] = "e"
			}
			emit(t, hf, fmt.Sprint("s", i), names...)
		}
		testkit.Eventually(t, "every stream is being handled", func() bool { return bodies.Load() >= goal })
		if err := server.Stop(mode); err != nil {
			t.Fatal(err)
		}
		close(shut) // they commit, and the server is gone
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range streams {
		waitForPosition(t, hf, "r", fmt.Sprint("s", i), "is done", handled(2*each-1))
		if p := positionOf(t, hf, "r", fmt.Sprint("s", i)); p.Failures+p.Crashes != 0 || p.Blocked {
			t.Errorf("got position %+v", *p)
		}
		wantOut(t, hf, fmt.Sprint("s", i), 2*each)
	}
	t.Logf("%d bodies for %d events", bodies.Load(), streams*2*each)
}

// TestPause verifies the pauses: how they grow, that they end at the maximum whatever
// the number of failures, and that the jitter makes them half to all of that.
func TestPause(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		kind string
		want []time.Duration // after 1, 2, … failures, from 1 s to 10 s
	}{
		{"fixed", []time.Duration{s, s, s, s, s}},
		{"linear", []time.Duration{s, 2 * s, 3 * s, 4 * s, 5 * s, 6 * s, 7 * s, 8 * s, 9 * s, 10 * s, 10 * s}},
		{"exponential", []time.Duration{s, 2 * s, 4 * s, 8 * s, 10 * s, 10 * s}},
	} {
		b := reactions.Backoff{Kind: c.kind, Base: s, Max: 10 * s, Steady: true}
		for i, want := range c.want {
			if got := b.Pause(i + 1); got != want {
				t.Errorf("%s: pause after %d failures is %s, want %s", c.kind, i+1, got, want)
			}
		}
		for _, huge := range []int{62, 63, 64, 65, 1000, 1_000_000, 1 << 40} {
			if got := b.Pause(huge); got != c.want[len(c.want)-1] {
				t.Errorf("%s: pause after %d failures is %s", c.kind, huge, got)
			}
		}
		b.Steady = false
		low, high := 10*s, time.Duration(0)
		for range 2000 {
			got := b.Pause(2)
			low, high = min(low, got), max(high, got)
		}
		if low < c.want[1]/2 || high > c.want[1] || high-low < c.want[1]/4 {
			t.Errorf("%s: pause with jitter is from %s to %s, want up to %s", c.kind, low, high, c.want[1])
		}
	}
}

// TestPausesDoNotOverflow verifies that no number of failures makes a pause negative or
// longer than the maximum, and that a pause with base 0 stays 0.
func TestPausesDoNotOverflow(t *testing.T) {
	t.Parallel()
	year := 365 * 24 * time.Hour
	for _, kind := range []string{"fixed", "linear", "exponential"} {
		for _, base := range []time.Duration{0, 1, 24 * time.Hour, year} {
			for _, failures := range []int{1, 2, 60, 300, 106_752, 1_000_000} {
				got := reactions.Backoff{Kind: kind, Base: base, Max: year, Steady: true}.Pause(failures)
				if got < 0 || got > year || got < base {
					t.Errorf("%s with base %s: pause after %d failures is %s", kind, base, failures, got)
				}
				if base == 0 && got != 0 {
					t.Errorf("%s without a base: pause after %d failures is %s, want 0", kind, failures, got)
				}
			}
		}
	}
}

// TestWhatWaitsBehindAHungBodyGoesToAnotherNode verifies that a stream which a node took
// and has not begun, because all its bodies hang beyond their timeout, is not renewed
// forever.
func TestWhatWaitsBehindAHungBodyGoesToAnotherNode(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		hung, release := make(chan struct{}, 10), make(chan struct{})
		part := func(hangs bool) holdfast.Part {
			return stream.React("r", stream.Select{}, func(context.Context, *stream.Delivery) error {
				if hangs {
					hung <- struct{}{}
					<-release
				}
				return nil
			}, stream.Options{Lease: time.Second, Timeout: 300 * time.Millisecond})
		}
		first := openNode(t, databaseAt(db), holdfast.Config{SweepEvery: 100 * time.Millisecond}, part(true), stream.MaxWorkers(1))
		emit(t, first, "a", "x")
		emit(t, first, "b", "x")
		first.start(t)
		t.Cleanup(func() { close(release) }) // before the stop, which waits for it
		<-hung
		next := startNode(t, databaseAt(db), briskly, part(false))
		for _, name := range []string{"a", "b"} {
			waitForPosition(t, next, "r", name, "is done", func(p stream.Position) bool { return p.Watermark == 0 })
		}
	})
}

// TestAHungBodyBeginsNothingUnderALostHold verifies that a node whose body returns after
// its timeout, when another node has the stream, begins none of the following events,
// although no renewal has reported the lost lease.
func TestAHungBodyBeginsNothingUnderALostHold(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		ctx := context.Background()
		hung, release, lost := make(chan struct{}), make(chan struct{}), make(chan struct{}, 10)
		var y deliveryLog
		first := openNode(t, databaseAt(db), holdfast.Config{SweepEvery: time.Hour}, stream.MaxWorkers(1), stream.React("r", stream.Select{}, func(_ context.Context, d *stream.Delivery) error {
			if y.write(d); d.Version == 0 {
				hung <- struct{}{}
				<-release
			}
			return nil
		}, stream.Options{Lease: time.Second, Timeout: 300 * time.Millisecond}))
		engine.Of(first).Reactions().Trace = func(c reactions.TraceEvent) {
			if c.What == "lost" {
				lost <- struct{}{}
			}
		}
		emit(t, first, "s", "a", "b", "c")
		first.start(t)
		t.Cleanup(sync.OnceFunc(func() { close(release) }))
		<-hung
		waitForPosition(t, first, "r", "s", "has run out", func(p stream.Position) bool { return p.Until.Before(databaseTime(t, first.Engine)) })
		for taken := 0; taken == 0; { // if the node itself has ended the lease, the stream is due a little later; its worker is busy
			err := first.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				_, err := reactions.Sweep(ctx, store.DoerOf(tx), store.Partition{}, func([]string) {})
				taken = len(takeByHand(t, tx, "r"))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		release <- struct{}{}
		<-lost
		if versions, _, _ := y.of("s"); len(versions) != 1 {
			t.Errorf("without a lease the handler got %v", versions)
		}
	})
}

// TestAnOutageIsNoFailureOfItsEvent verifies that an event whose body succeeded, and
// whose acknowledgement failed because the database was unavailable for a moment, is
// retried even without retries left.
func TestAnOutageIsNoFailureOfItsEvent(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		m := &faultyDatabase{Database: store.DatabaseOf(databaseAt(db)), command: "reactions.ack", after: once(nil),
			before: once(func() error { return fault.New(fault.Unavailable, "down") })}
		hf := startNode(t, store.HandleDatabase(m), briskly, stream.React("r", stream.Select{Pattern: "^s$"}, func(_ context.Context, d *stream.Delivery) error {
			d.WriteTx(writeOut(d, "w"))
			return nil
		}, stream.Options{Retry: lasting(1, time.Millisecond)}))
		emit(t, hf, "s", "a")
		p := waitForPosition(t, hf, "r", "s", "comes to an end", func(p stream.Position) bool { return p.Blocked || handled(0)(p) })
		if p.Blocked {
			t.Errorf("got position %+v", p)
		}
	})
}

// Properties: what a policy says is stored, and a zero field is the default; a policy that a reaction cannot store is
// refused when the engine opens, and names the field.
func TestARetryPolicyIsStored(t *testing.T) {
	t.Parallel()
	react := func(p holdfast.RetryPolicy) holdfast.Part {
		return stream.React("r", stream.Select{}, func(context.Context, *stream.Delivery) error { return nil }, stream.Options{Retry: p})
	}
	for p, want := range map[holdfast.RetryPolicy]string{
		{}:               "3 exponential 1s 5m0s",
		{MaxAttempts: 1}: "0 exponential 1s 5m0s",
		{MaxAttempts: 9, Backoff: time.Minute, Multiplier: 2}: "8 exponential 1m0s 5m0s",
		{Backoff: time.Hour}: "3 exponential 1h0m0s 1h0m0s",
		{Backoff: time.Minute, Multiplier: 1, MaxBackoff: 7 * time.Minute}: "3 fixed 1m0s 7m0s",
	} {
		hf := openNode(t, databaseAt("sqlite:"+holdfasttest.SQLite(t)), briskly, react(p))
		got, err := reactions.Get(context.Background(), engine.Of(hf), "r")
		if have := fmt.Sprint(got.MaxRetries, " ", got.Backoff.Kind, " ", got.Backoff.Base, " ", got.Backoff.Max); err != nil || have != want {
			t.Errorf("%+v is stored as %s, want %s (error %v)", p, have, want, err)
		}
	}
	for field, p := range map[string]holdfast.RetryPolicy{"Multiplier": {Multiplier: 3}, "MaxAttempts": {MaxAttempts: -1}, "Backoff": {Backoff: -1}, "MaxBackoff": {MaxBackoff: -1}} {
		_, err := holdfast.Open(context.Background(), databaseAt("sqlite:"+holdfasttest.SQLite(t)), holdfast.Config{}, react(p))
		if fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: got error %v", p, err)
		}
	}
}
