package retention_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/retention"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

// move moves an entity back and forth, and returns its history.
func move(t *testing.T, hf *holdfast.Engine, id string, times int) {
	t.Helper()
	for range times {
		if _, err := entities.Transition(t.Context(), engine.Of(hf), entities.TransitionArgs{Lifecycle: "l", ID: id, From: []string{"s"}, To: "s", Event: "moved"}); err != nil {
			t.Fatal(err)
		}
	}
}

func create(t *testing.T, hf *holdfast.Engine, id string) {
	t.Helper()
	if _, err := entities.Create(t.Context(), engine.Of(hf), entities.CreateArgs{Lifecycle: "l", ID: id, Status: "s"}); err != nil {
		t.Fatal(err)
	}
}

func versions(t *testing.T, hf *holdfast.Engine, name string) (all []stream.Version) {
	t.Helper()
	events, err := holdfast.Collect(stream.Read(t.Context(), hf, name, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		all = append(all, e.Version)
	}
	return all
}

func first(t *testing.T, hf *holdfast.Engine, name string) stream.Version {
	t.Helper()
	all := versions(t, hf, name)
	if len(all) == 0 {
		t.Fatalf("%s has no events", name)
	}
	return all[0]
}

// TestOldHistoryGoes verifies that events past their retention are deleted, that the last event of each object
// and younger events stay, that versions continue, that events of users are not touched, and that the check
// finds nothing wrong.
func TestOldHistoryGoes(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		create(t, hf, "idle")
		move(t, hf, "idle", 3)
		create(t, hf, "busy")
		move(t, hf, "busy", 3)
		if _, err := storetest.Inc(t.Context(), hf, storetest.IncArgs{Kind: "k", ID: "s", Field: "n", By: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Append(t.Context(), hf, "users", stream.Any, stream.Event{Name: "a"}, stream.Event{Name: "b"}); err != nil {
			t.Fatal(err)
		}
		p := retention.Pruner{Retention: time.Hour}
		if n, _, err := p.Sweep(t.Context(), engine.Of(hf), 2000); err != nil || n != 0 {
			t.Fatalf("deleted %d events at once, error %v, want 0", n, err)
		}
		holdfasttest.Advance(t, hf, 2*time.Hour)
		move(t, hf, "busy", 2)
		if n, _, err := p.Sweep(t.Context(), engine.Of(hf), 2000); err != nil || n != 7 {
			t.Fatalf("deleted %d events, error %v, want 7", n, err)
		}
		if got := versions(t, hf, entities.Stream("l", "idle")); len(got) != 1 || got[0] != 3 {
			t.Errorf("idle entity has versions %v, want 3", got)
		}
		if got := versions(t, hf, entities.Stream("l", "busy")); len(got) != 2 || got[0] != 4 {
			t.Errorf("busy entity has versions %v, want 2 from 4 on", got)
		}
		if got := versions(t, hf, "users"); len(got) != 2 {
			t.Errorf("user stream has versions %v, want 2", got)
		}
		if n, _, err := p.Sweep(t.Context(), engine.Of(hf), 2000); err != nil || n != 0 {
			t.Errorf("second sweep deleted %d events, error %v, want 0", n, err)
		}
		holdfasttest.Advance(t, hf, 2*time.Hour)
		if n, _, err := p.Sweep(t.Context(), engine.Of(hf), 2000); err != nil || n != 1 {
			t.Errorf("after two hours the sweep deleted %d events, error %v, want 1", n, err)
		}
		move(t, hf, "idle", 1)
		if got := versions(t, hf, entities.Stream("l", "idle")); got[len(got)-1] != 4 {
			t.Errorf("idle entity continues with versions %v, want 4 as the last", got)
		}
	})
}

// TestWhatAReactionNeedsStays verifies that a lagging reaction keeps the events it still has to handle, even
// while it is blocked, until it has caught up.
func TestWhatAReactionNeedsStays(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		def := reactions.Definition{Name: "r", Streams: `^\$entity/`, Options: reactions.DefaultOptions()}
		if _, err := reactions.Register(ctx, engine.Of(hf), def); err != nil {
			t.Fatal(err)
		}
		create(t, hf, "a")
		move(t, hf, "a", 3)
		holdfasttest.Advance(t, hf, 2*time.Hour)
		p := retention.Pruner{Retention: time.Hour}
		sweep := func() {
			t.Helper()
			if _, _, err := p.Sweep(ctx, engine.Of(hf), 2000); err != nil {
				t.Fatal(err)
			}
		}
		name := entities.Stream("l", "a")
		sweep()
		if first(t, hf, name) != 0 {
			t.Fatalf("due notices do not retain the stream: %v", versions(t, hf, name))
		}
		l := take(ctx, t, hf)
		if err := reactions.Block(ctx, engine.Of(hf), l, 1, 2, "no", 1, true); err != nil {
			t.Fatal(err)
		}
		sweep()
		if got := first(t, hf, name); got != 2 {
			t.Errorf("blocked at version 2: first stored version is %d, want 2", got)
		}
		if touched, _, err := reactions.Repair(ctx, engine.Of(hf), "unblock", "", reactions.Filter{}); err != nil || len(touched) != 1 {
			t.Fatal(touched, err)
		}
		l = take(ctx, t, hf)
		if _, err := reactions.AckOne(ctx, engine.Of(hf), reactions.End{Lease: l, Done: 3}); err != nil {
			t.Fatal(err)
		}
		sweep()
		if got := first(t, hf, name); got != 3 {
			t.Errorf("after the reaction caught up: first stored version is %d, want 3", got)
		}
	})
}

func take(ctx context.Context, t *testing.T, hf *holdfast.Engine) *reactions.Lease {
	t.Helper()
	at, err := engine.Of(hf).Partition(ctx, store.Read)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reactions.CollectDue(ctx, engine.Of(hf), at, []string{"r"}); err != nil {
		t.Fatal(err)
	}
	all, err := reactions.Take(ctx, engine.Of(hf), reactions.TakeArgs{Reactions: []reactions.Wanted{{Name: "r", Lease: time.Minute}}, Holder: "h", Limit: 10})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

// TestKeepingTooShortIsRefused verifies that the proof of a lost commit cannot be deleted before it is needed.
func TestKeepingTooShortIsRefused(t *testing.T) {
	db := holdfasttest.SQLite(t)
	_, err := holdfast.Open(t.Context(), sqlite.File(db), holdfast.Config{HistoryRetention: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "HistoryRetention") {
		t.Errorf("got error %v", err)
	}
}

// TestASlowClockShortensNoHistory verifies that events written by a node with a slow clock are retained as long
// as all others, by the database's time.
func TestASlowClockShortensNoHistory(t *testing.T) {
	hf := holdfasttest.OpenOn(t, holdfasttest.At(holdfasttest.PostgreSQL(t)))
	create(t, hf, "e")
	move(t, hf, "e", 2)
	slow := uuid.Must(uuid.NewV7()) // by a clock that is 61 minutes slow
	for i, ms := 0, time.Now().Add(-61*time.Minute).UnixMilli(); i < 6; i++ {
		slow[i] = byte(ms >> (40 - 8*i))
	}
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		done, err := postgres.Raw(tx).Exec(ctx, `UPDATE holdfast.history SET id = $1::text::uuid WHERE stream = $2 AND version = 1`,
			slow.String(), entities.Stream("l", "e"))
		if err == nil && done.RowsAffected() != 1 {
			t.Errorf("changed the id of %d events, want 1", done.RowsAffected())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p := retention.Pruner{Retention: retention.Shortest}
	if n, _, err := p.Sweep(t.Context(), engine.Of(hf), 2000); err != nil || n != 0 {
		t.Errorf("deleted %d recent events, error %v, want 0", n, err)
	}
}

// TestASweepThatDeletesNothingRests verifies that a full page is a reason to continue at once only if something on it was
// deleted: events that must stay are read again in each pass.
func TestASweepThatDeletesNothingRests(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for _, id := range []string{"a", "b", "c", "d"} {
			create(t, hf, id)
		}
		move(t, hf, "d", 4)
		holdfasttest.Advance(t, hf, 2*time.Hour)
		p := retention.Pruner{Retention: time.Hour, Rest: 3}
		for i, want := range []struct {
			n    int
			more bool
		}{{0, false}, {3, true}, {1, false}} { // a, b, c; three of d; the one before its last
			n, more, err := p.Sweep(t.Context(), engine.Of(hf), 3)
			if err != nil || n != want.n || more != want.more {
				t.Errorf("sweep %d: deleted %d, more %t, error %v, want %d and %t", i, n, more, err, want.n, want.more)
			}
		}
	})
}
