package check_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/wallets"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Closing(m)) }

// scene is an engine, and a way to damage its data.
type scene struct {
	*testing.T
	hf *holdfast.Engine
}

// onBoth runs a test on both databases. The engine is not one of holdfasttest's, which would fail because of
// the damage.
func onBoth(t *testing.T, f func(*scene)) {
	t.Helper()
	storetest.OnBoth(t, func(t *testing.T, db string) { f(opened(t, holdfasttest.At(db))) })
}

// exec runs a statement on Holdfast's tables, written in SQLite's dialect.
func (s *scene) exec(query string) {
	s.Helper()
	s.raw(func(ctx context.Context, tx holdfast.Tx) error {
		_, err := storetest.Exec(ctx, tx, query)
		return err
	})
}

func opened(t *testing.T, db holdfast.Database) *scene {
	t.Helper()
	hf, err := holdfast.Open(context.Background(), db, holdfast.Config{Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hf.Close(); err != nil {
			t.Error(err)
		}
	})
	return &scene{T: t, hf: hf}
}

func (s *scene) raw(f func(context.Context, holdfast.Tx) error) {
	s.Helper()
	if err := s.hf.Update(context.Background(), f); err != nil {
		s.Fatalf("%v", err)
	}
}

func (s *scene) check() holdfast.Report {
	s.Helper()
	r, err := s.hf.Check(context.Background())
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// fill writes a stream, an entity and a scope with three events each, and a deleted scope, in several
// workspaces on several shards.
func (s *scene) fill(workspaces ...string) {
	s.Helper()
	for i, w := range workspaces {
		ctx := holdfast.InWorkspace(context.Background(), w)
		if i == 2 {
			s.react(ctx)
		}
		err := s.hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error { return fill(ctx, tx) })
		if err != nil {
			s.Fatal(err)
		}
		at, err := engine.Of(s.hf).Partition(ctx, store.Read)
		if err != nil {
			s.Fatal(err)
		}
		if _, err := reactions.CollectDue(ctx, engine.Of(s.hf), at, []string{"watch"}); err != nil {
			s.Fatal(err)
		}
	}
}

// react registers a reaction that wants every event.
func (s *scene) react(ctx context.Context) {
	s.Helper()
	if _, err := reactions.Register(ctx, engine.Of(s.hf), reactions.Definition{Name: "watch", Options: reactions.DefaultOptions()}); err != nil {
		s.Fatal(err)
	}
}

func fill(ctx context.Context, tx holdfast.Tx) error {
	event := stream.Event{Name: "a"}
	if _, err := stream.Append(ctx, tx, "orders/7", stream.None, event, event, event); err != nil {
		return err
	}
	if _, err := entities.Create(ctx, store.DoerOf(tx), entities.CreateArgs{Lifecycle: "invoice", ID: "a/b", Status: "open"}); err != nil {
		return err
	}
	for range 2 {
		if _, err := entities.Transition(ctx, store.DoerOf(tx), entities.TransitionArgs{Lifecycle: "invoice", ID: "a/b", From: []string{"open"}, To: "open", Event: "kept"}); err != nil {
			return err
		}
	}
	for range 3 {
		if _, err := storetest.Inc(ctx, tx, storetest.IncArgs{Kind: "user", ID: "u/v", Field: "n", By: 1}); err != nil {
			return err
		}
	}
	if _, err := scopestore.Put(ctx, store.DoerOf(tx), scopestore.PutArgs{Kind: "user", ID: "gone", State: []byte(`{}`)}); err != nil {
		return err
	}
	if _, err := scopestore.Delete(ctx, store.DoerOf(tx), scopestore.DeleteArgs{Kind: "user", ID: "gone"}); err != nil {
		return err
	}
	return paid(ctx, tx)
}

// paid creates a wallet and posts to it.
func paid(ctx context.Context, tx holdfast.Tx) error {
	if _, err := wallets.Put(ctx, store.DoerOf(tx), "acme", false); err != nil {
		return err
	}
	for i, delta := range []int64{10, -3} {
		if _, err := wallets.Post(ctx, store.DoerOf(tx), wallets.PostArgs{Wallet: "acme", Delta: delta, Reason: "test", Reference: fmt.Sprint(i)}); err != nil {
			return err
		}
	}
	return nil
}

// TestPlantedViolations verifies that the check finds nothing in data written by the verbs, in all workspaces
// and on all shards, and that it names each kind of damage, where it is, and nothing else.
func TestPlantedViolations(t *testing.T) {
	onBoth(t, func(s *scene) {
		for i, p := range plantedViolations {
			at := strings.NewReplacer("w1", fmt.Sprint("w1-", i), "w2", fmt.Sprint("w2-", i), "w3", fmt.Sprint("w3-", i))
			s.fill(at.Replace("w1"), at.Replace("w2"), at.Replace("w3"))
			before := s.check()
			s.exec(at.Replace(p.damage))
			after := s.check()
			if len(before.Violations) != i || len(after.Violations) != i+1 {
				s.Fatalf("%s: %d violations before, %d after:\n%s", p.name, len(before.Violations), len(after.Violations), after)
			}
			if want := at.Replace(p.want); !strings.Contains(after.String(), want+"\n") {
				s.Errorf("%s: want violation %s in\n%s", p.name, want, after)
			}
		}
	})
}

// TestCleanReport verifies what the check counts in data written by the verbs.
func TestCleanReport(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.fill("w1", "w2", "w3")
		if r := s.check(); !r.Clean() || r.String() != "" || fmt.Sprint(r.Checked) != "map[batches:0 claims:0 entities:3 positions:1 runs:0 scopes:6 streams:3 wallets:3]" {
			s.Errorf("checked %v, violations:\n%s", r.Checked, r)
		}
	})
}

var plantedViolations = []struct{ name, damage, want string }{
	{"a balance without a posting",
		`UPDATE holdfast_wallet SET balance = 8 WHERE workspace = 'w2'`,
		"I9: wallet acme in workspace w2: the balance is 8, but the ledger of 2 rows adds up to 7"},
	{"a row of a ledger that is gone",
		`DELETE FROM holdfast_ledger WHERE workspace = 'w1' AND n = 2`,
		"I9: wallet acme in workspace w1: the balance is 7, but the ledger of 1 rows adds up to 10"},
	{"a reaction does not know of an event",
		`UPDATE holdfast_follow SET due = 1 WHERE workspace = 'w3'`,
		`I20: reaction watch/orders/7 in workspace w3: the reaction was notified of version 1, but the stream is at version 2 and there is no due notice`},
	{"a reaction is beyond the end",
		`UPDATE holdfast_follow SET watermark = 7 WHERE workspace = 'w3'`,
		`I20: reaction watch/orders/7 in workspace w3: the reaction has handled version 7 and was notified of version 2, but the stream ends at version 2`},
	{"a claim counts effects that the journal has not",
		`UPDATE holdfast_entity SET phase = 'uncertain', operation = 'op', revert = 'open', begun = 2, epoch = 1 WHERE workspace = 'w3'`,
		`I5: entity invoice/a/b in workspace w3: the claim with epoch 1 counts 2 effects that may have happened, but the journal has 0, or the claim was reverted although an effect may have happened`},
	{"an event in the middle is gone",
		`DELETE FROM holdfast_event WHERE workspace = 'w2' AND stream = 'orders/7' AND version = 1`,
		`I17: stream orders/7 in workspace w2: the version is 2, but there are 2 events instead of 3: versions are missing`},
	{"the first event is gone",
		`DELETE FROM holdfast_event WHERE workspace = 'w2' AND stream = 'orders/7' AND version = 0`,
		`I17: stream orders/7 in workspace w2: the version is 2, but there are 2 events instead of 3: versions are missing`},
	{"the last event is gone",
		`DELETE FROM holdfast_event WHERE workspace = 'w2' AND stream = 'orders/7' AND version = 2`,
		`I17: stream orders/7 in workspace w2: the version is 2, but the last event is at version 1`},
	{"a head is too high",
		`UPDATE holdfast_stream SET head = 9 WHERE workspace = 'w1'`,
		`I17: stream orders/7 in workspace w1: the version is 9, but the last event is at version 2`},
	{"a head is too low",
		`UPDATE holdfast_stream SET head = 0 WHERE workspace = 'w1'`,
		`I17: stream orders/7 in workspace w1: the version is 0, but the last event is at version 2`},
	{"all events are gone",
		`DELETE FROM holdfast_event WHERE workspace = 'w1'`,
		`I17: stream orders/7 in workspace w1: the version is 2, but there are no events`},
	{"a head is gone",
		`DELETE FROM holdfast_stream WHERE workspace = 'w1'`,
		`I17: stream orders/7 in workspace w1: there are 3 events, the last at version 2, but no row for the object itself`},
	{"a stored event is missing",
		`UPDATE holdfast_stream SET first = 2, pruned = 2 WHERE workspace = 'w2'; DELETE FROM holdfast_event WHERE workspace = 'w2' AND version < 3`,
		`I17: stream orders/7 in workspace w2: the version is 2, but there are no events`},
	{"an event was deleted that must be stored",
		`DELETE FROM holdfast_event WHERE workspace = 'w2' AND version < 2; UPDATE holdfast_stream SET first = 1, pruned = 1 WHERE workspace = 'w2'`,
		`I17: stream orders/7 in workspace w2: the version is 2, but there are 1 events instead of 2: versions are missing`},
	{"an event was not deleted",
		`UPDATE holdfast_stream SET first = 2, pruned = 2 WHERE workspace = 'w2'`,
		`I17: stream orders/7 in workspace w2: there are events below the version up to which they are recorded as deleted, or that version is above the stream's first version`},
	{"more is deleted than was dropped",
		`UPDATE holdfast_stream SET pruned = 1 WHERE workspace = 'w2'; DELETE FROM holdfast_event WHERE workspace = 'w2' AND version = 7`,
		`I17: stream orders/7 in workspace w2: there are events below the version up to which they are recorded as deleted, or that version is above the stream's first version`},
	{"a tombstone keeps events",
		`UPDATE holdfast_stream SET state = 'closed', closed = 'tombstone' WHERE workspace = 'w2'`,
		`I17: stream orders/7 in workspace w2: the stream is a tombstone, but has events before the last one`},
	{"an entity's version was changed",
		`UPDATE holdfast_entity SET version = 7 WHERE workspace = 'w3'`,
		`I42: entity invoice/a/b in workspace w3: the version is 7, but the last event is at version 2`},
	{"an entity's event is gone",
		`DELETE FROM holdfast_history WHERE workspace = 'w3' AND stream = '$entity/invoice/a/b' AND version = 1`,
		`I42: entity invoice/a/b in workspace w3: the version is 2, but there are 2 events instead of 3: versions are missing`},
	{"an event is missing from a history that retention has shortened",
		`DELETE FROM holdfast_history WHERE workspace = 'w1' AND stream = '$entity/invoice/a/b' AND version = 0;
		 UPDATE holdfast_history SET version = 3 WHERE workspace = 'w1' AND stream = '$entity/invoice/a/b' AND version = 2;
		 UPDATE holdfast_entity SET version = 3 WHERE workspace = 'w1'`,
		`I42: entity invoice/a/b in workspace w1: the version is 3, but there are 2 events instead of 3: versions are missing`},
	{"an entity is gone",
		`DELETE FROM holdfast_entity WHERE workspace = 'w3'`,
		`I42: history $entity/invoice/a/b in workspace w3: there are 3 events, the last at version 2, but no row for the object itself`},
	{"a scope's version was changed",
		`UPDATE holdfast_scope SET version = version - 1 WHERE workspace = 'w2' AND id = 'u/v'`,
		`I30: scope user/u/v in workspace w2: the version is 1, but the last event is at version 2`},
	{"an event is missing from a scope's history that retention has shortened",
		`DELETE FROM holdfast_history WHERE workspace = 'w1' AND stream = '$scope/user/u/v' AND version = 0;
		 UPDATE holdfast_history SET version = 3 WHERE workspace = 'w1' AND stream = '$scope/user/u/v' AND version = 2;
		 UPDATE holdfast_scope SET version = 3 WHERE workspace = 'w1' AND id = 'u/v'`,
		`I30: scope user/u/v in workspace w1: the version is 3, but there are 2 events instead of 3: versions are missing`},
	{"a scope is gone",
		`DELETE FROM holdfast_scope WHERE workspace = 'w2' AND id = 'u/v'`,
		`I42: history $scope/user/u/v in workspace w2: there are 3 events, the last at version 2, but no row for the object itself`},
}

// TestOverdueHolds verifies that a lease not released long after its expiry is counted, and is not a violation.
func TestOverdueHolds(t *testing.T) {
	onBoth(t, func(s *scene) {
		ctx := context.Background()
		if _, err := entities.Create(ctx, engine.Of(s.hf), entities.CreateArgs{Lifecycle: "invoice", ID: "i", Status: "open"}); err != nil {
			s.Fatal(err)
		}
		if _, err := entities.Take(ctx, engine.Of(s.hf), entities.ClaimArgs{Lifecycle: "invoice", ID: "i", Choices: map[string]entities.Choice{"open": {Into: "closing", Revert: "open"}},
			Operation: "op", Step: "close", Requester: "api", Holder: "me", Lease: time.Minute}); err != nil {
			s.Fatal(err)
		}
		for _, want := range []int64{0, 0, 1} {
			if r := s.check(); r.OverdueLeases != want || !r.Clean() {
				s.Errorf("got %d overdue leases, want %d\n%s", r.OverdueLeases, want, r)
			}
			holdfasttest.Advance(s, s.hf, 80*time.Second)
		}
	})
}

// TestDroppedEventsAreNoViolation verifies that dropped events that are not deleted yet are not reported, nor
// is a stream closed in any way.
func TestDroppedEventsAreNoViolation(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.fill("w1", "w2", "w3")
		s.exec(`UPDATE holdfast_stream SET first = 1 WHERE workspace = 'w1'`)
		s.exec(`UPDATE holdfast_stream SET first = 2, state = 'closed', closed = 'tombstone' WHERE workspace = 'w2'`)
		s.exec(`UPDATE holdfast_stream SET state = 'closed', closed = 'archive' WHERE workspace = 'w3'`)
		if r := s.check(); !r.Clean() {
			s.Errorf("got violations: %s", r)
		}
		s.exec(`UPDATE holdfast_stream SET pruned = 1 WHERE workspace = 'w1'`)
		s.exec(`DELETE FROM holdfast_event WHERE workspace = 'w1' AND version < 1`)
		if r := s.check(); !r.Clean() {
			s.Errorf("got violations: %s", r)
		}
	})
}

// TestOverdueClose verifies that a stream still half closed long after its closer's lease expired is counted as
// an overdue lease.
func TestOverdueClose(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.fill("w1")
		past := map[bool]string{true: "1", false: "'epoch'"}[strings.HasSuffix(s.Name(), "/sqlite")]
		s.exec(`UPDATE holdfast_stream SET state = 'closing', holder = 'me', until = ` + past + ` WHERE workspace = 'w1'`)
		if r := s.check(); r.OverdueLeases != 1 || !r.Clean() {
			s.Errorf("got %d overdue leases, want 1\n%s", r.OverdueLeases, r)
		}
	})
}

// TestVoidEventsAreNoViolation verifies that an event that resolves an unknown outcome is not reported.
func TestVoidEventsAreNoViolation(t *testing.T) {
	onBoth(t, func(s *scene) {
		s.fill("w1")
		id := map[bool]string{true: "randomblob(16)", false: "gen_random_uuid()"}[strings.HasSuffix(s.Name(), "/sqlite")]
		now := map[bool]string{true: "0", false: "now()"}[strings.HasSuffix(s.Name(), "/sqlite")]
		for _, table := range []string{"event", "history"} {
			s.exec(fmt.Sprintf(`INSERT INTO holdfast_%s (shard, id, n, workspace, stream, version, name, data, at)
				VALUES (0, %s, 0, 'w1', '$void/x', 0, 'void', '{}', %s)`, table, id, now))
		}
		if r := s.check(); !r.Clean() {
			s.Errorf("got violations: %s", r)
		}
	})
}

// TestPages verifies that nothing is omitted or counted twice if there is more than one page, and that
// violations beyond the limit of the list are counted.
func TestPages(t *testing.T) {
	onBoth(t, func(s *scene) {
		const streams = 2345
		ctx := context.Background()
		for from := 0; from < streams; from += 500 {
			s.raw(func(_ context.Context, tx holdfast.Tx) error {
				for i := from; i < min(from+500, streams); i++ {
					if _, err := stream.Append(ctx, tx, fmt.Sprint("s", i), stream.None, stream.Event{Name: "a"}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		s.exec(`UPDATE holdfast_stream SET head = 5 WHERE name LIKE '%0'`)
		s.exec(`DELETE FROM holdfast_stream WHERE name LIKE '%1'`)
		r := s.check()
		tens, ones := int64(235), int64(235) // s0, s10 … s2340; s1, s11 … s2341
		if got := r.Checked["streams"]; got != streams-ones {
			s.Errorf("checked %d streams, want %d", got, streams-ones)
		}
		if len(r.Violations) != 2*check.MostListed || r.Unlisted != tens+ones-2*check.MostListed {
			s.Errorf("got %d listed and %d unlisted violations, want %d in total", len(r.Violations), r.Unlisted, tens+ones)
		}
	})
}

// TestCheckInTransactionIsRefused verifies that a check cannot run inside a transaction, where it would see
// uncommitted data.
func TestCheckInTransactionIsRefused(t *testing.T) {
	s := opened(t, sqlite.File(holdfasttest.SQLite(t)))
	err := s.hf.Update(context.Background(), func(ctx context.Context, _ holdfast.Tx) error {
		_, err := s.hf.Check(ctx)
		return err
	})
	if fault.CodeOf(err) != fault.Reentrant {
		t.Errorf("got error %v, want REENTRANT", err)
	}
}
