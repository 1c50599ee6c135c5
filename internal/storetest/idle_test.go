package storetest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/remotehandler"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// counted is a database that counts its calls by verb.
type counted struct {
	store.Database
	mu     sync.Mutex
	counts map[string]int
}

func (c *counted) Open(ctx context.Context, o store.Options) (store.Store, error) {
	s, err := c.Database.Open(ctx, o)
	return &countedStore{s, c}, err
}

func (c *counted) count(verb string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[string]int)
	}
	c.counts[verb]++
}

// since returns the calls since it was last called.
func (c *counted) since() (n int, by []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, verb := range slices.Sorted(maps.Keys(c.counts)) {
		n += c.counts[verb]
		by = append(by, fmt.Sprint(verb, " ", c.counts[verb]))
	}
	clear(c.counts)
	return n, by
}

type countedStore struct {
	store.Store
	by *counted
}

func (s *countedStore) Base() store.Store { return s.Store }

func (s *countedStore) Do(ctx context.Context, c store.Command) error {
	s.by.count(c.Decl().Name)
	return s.Store.Do(ctx, c)
}

func (s *countedStore) Update(ctx context.Context, f func(context.Context, store.Conn) error) error {
	s.by.count("a transaction")
	return s.Store.Update(ctx, f)
}

// fullNode opens a node with everything that a server has or, embedded, a program of some size:
// reactions, kinds of items, lifecycles and runs.
func fullNode(t *testing.T, db holdfast.Database, embedded bool) *holdfast.Engine {
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	o := httpapi.Options{Log: log, SecretKeys: [][]byte{make([]byte, 32)}}
	parts := []holdfast.Part{stream.Feed(stream.FeedOptions{}), httpapi.New(o)}
	if embedded {
		for i := range 3 {
			parts = append(parts,
				stream.React(fmt.Sprint("r", i), stream.Select{}, func(context.Context, *stream.Delivery) error { return nil }, stream.Options{}),
				batch.Define(fmt.Sprint("k", i), func(context.Context, *batch.Item[int]) (int, error) { return 1, nil }, batch.Options{}),
				lifecycle.MustParse[map[string]any]([]byte(fmt.Sprintf(`
workflow: w%d
owning_module: m
status_types: [open, closing, closed]
initial_status: open
janitor: {stuck_after: 5m}
steps:
- {step_id: 10, step_key: close, status: open, successful_claim_state: [closing, open], successful_state: closed, action: Act, success_after_effect: Tell}
`, i))).Action("Act", func(context.Context, *lifecycle.Act[map[string]any]) error { return nil }, lifecycle.Idempotent()).
					AfterEffect("Tell", func(context.Context, *lifecycle.Act[map[string]any]) error { return nil }, lifecycle.Idempotent()).RecoveredBy())
		}
		parts = append(parts, run.Define("d", "1", run.Wait("pause", time.Hour),
			run.Task("t", func(context.Context, int) (int, error) { return 1, nil }, run.Idempotent())))
	}
	hf := holdfasttest.OpenOn(t, db, parts...)
	testkit.Run(t, hf)
	return hf
}

// TestAnIdleNodeAsksTwiceASecondAtMost verifies that a node with all capabilities and no due work
// queries its database at most twice a second: a server, and a program with its own handlers. A
// slow machine queries less.
func TestAnIdleNodeAsksTwiceASecondAtMost(t *testing.T) {
	testlevel.Long(t)
	for _, kind := range []string{"server", "embedded"} {
		for _, name := range []string{"sqlite", "postgres"} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				url := "sqlite:" + holdfasttest.SQLite(t)
				if name == "postgres" {
					url = holdfasttest.PostgreSQL(t)
				}
				idles(t, url, kind == "embedded")
			})
		}
	}
}

func idles(t *testing.T, url string, embedded bool) {
	db := &counted{Database: store.DatabaseOf(database(url))}
	hf := fullNode(t, store.HandleDatabase(db), embedded)
	ctx := t.Context()
	if _, err := stream.Append(ctx, hf, "s", stream.Any, stream.Event{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	sent := func() int { return 0 }
	if !strings.HasPrefix(url, "sqlite:") {
		watch, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = watch.Close(context.Background()) })
		if _, err := watch.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS pg_stat_statements`); err != nil {
			t.Fatal(err)
		}
		sent = func() int { return queries(t, watch) }
	}
	_ = clock.Wait(ctx, 6*time.Second) // until it is idle
	begun, before := clock.Now(), sent()
	db.since()
	_ = clock.Wait(ctx, 20*time.Second) // includes rounds of the janitor
	took := clock.Since(begun)
	commands, by := db.since()
	statements := sent() - before
	t.Logf("%d commands in %s, %.2f per second, of which PostgreSQL got %d statements: %s", commands, took.Round(time.Millisecond), float64(commands)/took.Seconds(), statements,
		strings.Join(by, ", "))
	if most := 2 * took.Seconds(); float64(commands) > most || float64(statements) > most {
		t.Errorf("%d commands and %d statements in %s, want at most two per second", commands, statements, took)
	}
}

// TestAnIdleNodeFindsWhatNobodyToldItOf verifies that an idle node does, within about two seconds,
// the work that another process leaves in the database without a signal: events of reactions and
// feeds, items, steps, a step that waits for a time, and work that becomes due again. The writing
// process does not run, so that nothing is signaled.
func TestAnIdleNodeFindsWhatNobodyToldItOf(t *testing.T) {
	testlevel.Long(t)
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := "sqlite:" + holdfasttest.SQLite(t)
			if name == "postgres" {
				url = holdfasttest.PostgreSQL(t)
			}
			finds(t, url)
		})
	}
}

func finds(t *testing.T, url string) {
	ctx := t.Context()
	did := make(chan string, 100)
	react := stream.React("r", stream.Select{Events: []string{"a"}}, func(_ context.Context, d *stream.Delivery) error {
		did <- "event"
		if d.Attempt == 1 {
			return stream.Snooze(time.Second)
		}
		return nil
	}, stream.Options{})
	kind := batch.Define("k", func(context.Context, *batch.Item[int]) (int, error) { did <- "item"; return 1, nil }, batch.Options{})
	steps := run.Define("d", "1", run.Wait("pause", time.Second),
		run.Task("t", func(context.Context, int) (int, error) { did <- "step"; return 1, nil }, run.Idempotent()))
	hf := holdfasttest.OpenOn(t, database(url), react, kind, steps, stream.Feed(stream.FeedOptions{}), httpapi.New(httpapi.Options{}))
	testkit.Run(t, hf)
	declared, end := engine.Of(hf).Hub().Wait(store.DeclaredTopic)
	defer end()
	other := holdfasttest.OpenOn(t, database(url), kind, steps)
	_ = clock.Wait(ctx, 8*time.Second) // until it is idle, and has read the declarations once
	select {
	case <-declared:
	default:
	}

	begun := clock.Now()
	if _, err := stream.Append(ctx, other, "s", stream.Any, stream.Event{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := batch.PutWallet(ctx, other, "w"); err != nil {
		t.Fatal(err)
	}
	if _, err := kind.Create(ctx, other, "w", slices.Values([]batch.NewItem[int]{{Key: "i", Cost: batch.Free, Input: 1}})); err != nil {
		t.Fatal(err)
	}
	if _, _, err := steps.Start(ctx, other, 1); err != nil {
		t.Fatal(err)
	}
	wanted := map[string]int{"event": 2, "item": 1, "step": 1}
	for len(wanted) > 0 {
		select {
		case what := <-did:
			took := clock.Since(begun)
			t.Logf("%s after %s", what, took.Round(time.Millisecond))
			if wanted[what]--; wanted[what] <= 0 {
				delete(wanted, what)
			}
		case <-time.After(20 * time.Second): // a poller would poll by itself much later
			t.Fatalf("work was not found: %v", wanted)
		}
	}
	testkit.Eventually(t, "the event is in the feed", func() bool {
		all, err := holdfast.Collect(stream.ReadFeed(ctx, hf, ""))
		return err == nil && len(all) > 0
	})
	t.Logf("all work was found after %s", clock.Since(begun).Round(time.Millisecond))
	err := other.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		_, err := remotehandler.Put(ctx, store.TxOf(tx), remotehandler.Handler{Name: "h", Kind: "worker", OnUnknown: "hold"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-declared:
	case <-time.After(20 * time.Second):
		t.Error("a handler that another process declared was not noticed")
	}
}
