package reactions_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// testDB is a database on which several engines can be opened.
type testDB struct{ url, path string }

// each is [storetest.OnEach] with a testDB.
func each(t *testing.T, f func(*testing.T, testDB)) {
	t.Helper()
	onEach(t, func(t *testing.T, db string) {
		if path, ok := strings.CutPrefix(db, "sqlite:"); ok {
			f(t, testDB{path: path})
		} else {
			f(t, testDB{url: db})
		}
	})
}

func (s testDB) postgres() bool { return s.url != "" }

func (s testDB) database() holdfast.Database {
	return holdfasttest.At(s.url + s.path) // one of the two is empty
}

// open opens an engine.
func (s testDB) open(t *testing.T, parts ...holdfast.Part) *holdfast.Engine {
	t.Helper()
	return holdfasttest.OpenOn(t, s.database(), parts...)
}

// node opens an engine and runs it until the test ends.
func (s testDB) node(t *testing.T, parts ...holdfast.Part) *holdfast.Engine {
	t.Helper()
	hf := s.open(t, parts...)
	testkit.Run(t, hf)
	return hf
}

// discardLog returns a logger that discards the output of engines that are made to fail.
func discardLog() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// must runs a statement of the program's own.
func (s testDB) must(t *testing.T, hf *holdfast.Engine, text string, args ...any) {
	t.Helper()
	err := hf.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) error {
		_, err := storetest.Exec(ctx, tx, text, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// texts reads one column.
func (s testDB) texts(t *testing.T, hf *holdfast.Engine, text string) (all []string) {
	t.Helper()
	err := hf.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) (err error) {
		all, err = storetest.Column[string](ctx, tx, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// held is an open transaction of the user's own on PostgreSQL.
type held struct {
	pgx.Tx
	tx holdfast.Tx
}

// hold begins a transaction with a snapshot of the current database.
func (s testDB) hold(t *testing.T, hf *holdfast.Engine, level pgx.TxIsoLevel) held {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.BeginTx(context.Background(), pgx.TxOptions{IsoLevel: level})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(context.Background(), `SELECT 1`); err != nil {
		t.Fatal(err)
	}
	joined, err := postgres.Join(hf, tx)
	if err != nil {
		t.Fatal(err)
	}
	return held{tx, joined}
}

func (h held) commit(t *testing.T) {
	t.Helper()
	if err := h.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func appendTo(t *testing.T, d holdfast.Doer, name string, events ...string) {
	t.Helper()
	all := make([]stream.Event, len(events))
	for i, e := range events {
		all[i].Name = e
	}
	if _, err := stream.Append(context.Background(), d, name, stream.Any, all...); err != nil {
		t.Fatalf("append to %s: %v", name, err)
	}
}

// define returns a definition with default options.
func define(name, streams string, events ...string) reactions.Definition {
	return reactions.Definition{Name: name, Streams: streams, Events: events, Options: reactions.DefaultOptions()}
}

func register(t *testing.T, hf *holdfast.Engine, d reactions.Definition) {
	t.Helper()
	if _, err := reactions.Register(context.Background(), engine.Of(hf), d); err != nil {
		t.Fatalf("register %s: %v", d.Name, err)
	}
}

func sweep(t *testing.T, hf *holdfast.Engine) {
	t.Helper()
	if _, err := reactions.Sweep(context.Background(), engine.Of(hf), store.Partition{}, func([]string) {}); err != nil {
		t.Fatalf("sweep: %v", err)
	}
}

func settled(t *testing.T, hf *holdfast.Engine, name string) bool {
	t.Helper()
	info, err := reactions.Get(context.Background(), engine.Of(hf), name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Settled
}

// take takes the due streams of a reaction by hand, with their events.
func take(t *testing.T, hf *holdfast.Engine, d reactions.Definition, limit int) []*reactions.Lease {
	t.Helper()
	ctx := context.Background()
	for more := true; more; {
		var err error
		if more, err = reactions.CollectDue(ctx, engine.Of(hf), store.Partition{}, []string{d.Name}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := reactions.Take(ctx, engine.Of(hf), reactions.TakeArgs{Reactions: []reactions.Wanted{{Name: d.Name, Lease: d.Lease}},
		Holder: "hand", Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	names := d.Events
	if slices.Contains(names, "*") {
		names = nil
	}
	if err := reactions.LoadEvents(ctx, engine.Of(hf), d.Source(), all, func(*reactions.Lease) []string { return names }, 3); err != nil {
		t.Fatal(err)
	}
	return all
}

// drain handles all due events of a reaction by hand, and returns them as "stream
// version name", sorted by stream and in the order of delivery.
func drain(t *testing.T, hf *holdfast.Engine, d reactions.Definition) (got []string) {
	t.Helper()
	for {
		all := take(t, hf, d, 100)
		if len(all) == 0 {
			slices.SortStableFunc(got, func(a, b string) int {
				a, _, _ = strings.Cut(a, " ")
				b, _, _ = strings.Cut(b, " ")
				return strings.Compare(a, b)
			})
			return got
		}
		ends := make([]reactions.End, len(all))
		for i, l := range all {
			for _, e := range l.Events {
				got = append(got, fmt.Sprint(e.Stream, " ", e.Version, " ", e.Name))
			}
			ends[i] = reactions.End{Lease: l, Done: l.Handled()}
		}
		out, err := reactions.Ack(context.Background(), engine.Of(hf), ends)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range out {
			if !o.Recorded {
				t.Fatalf("the end of %s was not recorded", all[i].Stream)
			}
		}
	}
}

// waitUntilNone waits until nothing is left, as long as there is progress. It does not depend
// on the speed of the machine.
func waitUntilNone(t *testing.T, what string, left func() int) {
	t.Helper()
	least, since := left(), clock.Now()
	for n := least; n != 0; n = left() {
		if n < least {
			least, since = n, clock.Now()
		}
		if clock.Since(since) > 30*time.Second {
			t.Fatalf("no progress for 30 s: %d %s", least, what)
		}
		_ = clock.Wait(context.Background(), 50*time.Millisecond)
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
