package run_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/sqlite"
)

// nodeVar names the variable that makes a test binary a node on a database.
const nodeVar = "HOLDFAST_RUN_NODE"

// eachAt is holdfasttest.Each for tests that pass the address of the database to other processes.
func eachAt(t *testing.T, f func(t *testing.T, e *holdfast.Engine, db string), parts ...holdfast.Part) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, db string) {
		f(t, holdfasttest.OpenOn(t, holdfasttest.At(db), parts...), db)
	})
}

// nodeDefs are the definitions of the nodes: their bodies report that they have begun, and end
// when proceed returns.
func nodeDefs(begun func(string), proceed func(context.Context) error) []*run.Definition {
	body := func(what string) func(context.Context, any) (string, error) {
		return func(ctx context.Context, _ any) (string, error) {
			info, _ := run.Of(ctx)
			begun(fmt.Sprintf("body %s %s %d", what, info.Run, info.Attempt))
			return what, proceed(ctx)
		}
	}
	return []*run.Definition{
		run.Define("quiet", "1", run.Task("work", body("quiet"), run.Idempotent(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 2, Backoff: time.Second}))),
		run.Define("opaque", "1", run.Task("work", body("opaque"), run.Opaque())),
	}
}

// TestNodeProcess is no test: it is what a child process does.
func TestNodeProcess(t *testing.T) {
	db := os.Getenv(nodeVar)
	if db == "" {
		return
	}
	if err := serveCommands(db); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serveCommands(db string) error {
	ctx := context.Background()
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	free := make(chan struct{})
	defs := nodeDefs(func(s string) { say("%s", s) }, func(ctx context.Context) error {
		<-free // whatever its context says
		return nil
	})
	defs = append(defs, behindDef(func(s string) { say("%s", s) }))
	e, err := holdfast.Open(ctx, holdfasttest.At(db), holdfast.Config{Log: slog.New(slog.DiscardHandler), SweepEvery: time.Hour}, parts(defs)...)
	if err != nil {
		return err
	}
	say("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var word, key string
		var n int
		_, _ = fmt.Sscan(in.Text(), &word, &key, &n)
		switch word {
		case "start":
			say("started %s", starts(ctx, e, key, n))
		case "work":
			go func() { _ = e.Run(ctx) }()
		case "go":
			close(free)
		case "move":
			go func() { say("moved %v", moves(ctx, e, n, func(id string) { say("moving %s", id) })) }()
		case "send":
			go func() { say("sent %s %v", key, run.Send(ctx, e, key, "news", "n", run.SignalID("1"))) }()
		}
	}
	return nil
}

// starts makes n concurrent starts of a run under a key, and returns their outcomes.
func starts(ctx context.Context, e *holdfast.Engine, key string, n int) string {
	var mu sync.Mutex
	var all sync.WaitGroup
	created, seen, failed := 0, map[string]bool{}, 0
	for range n {
		all.Go(func() {
			r, made, err := simple().Start(ctx, e, order{"o", 1}, run.Key(key))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				failed++
				return
			}
			if seen[r.ID] = true; made {
				created++
			}
		})
	}
	all.Wait()
	ids := ""
	for id := range seen {
		ids += id + ","
	}
	return fmt.Sprintf("%d %d %s", created, failed, ids)
}

// aimed is a step that is done, and then a signal that is waited for.
func aimed() *run.Definition {
	return run.Define("aimed", "1", run.Remote("first", "w", run.Idempotent()), run.Signal("told", "news", run.Timeout(time.Hour)))
}

// moves moves n runs to the step that waits, a few at once. Each reports its id while
// it is moving, and is committed when another transaction waits for it.
func moves(ctx context.Context, e *holdfast.Engine, n int, moving func(id string)) error {
	mine := func(handler string) (runengine.Handled, bool) { return runengine.Handled{}, handler == "w" }
	const atOnce = 4
	errs := make([]error, atOnce)
	var all sync.WaitGroup
	for i := range atOnce {
		all.Go(func() {
			for range (n + i) / atOnce {
				l, _, err := runengine.LocalOf(engine.Of(e)).Executor.Start(ctx, engine.Of(e), runengine.Start{Definition: "aimed@1", Holder: "me", Lease: time.Minute, Local: mine})
				if err == nil {
					err = e.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error { return moveSlowly(ctx, e, tx, &l, moving) })
				}
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func moveSlowly(ctx context.Context, e *holdfast.Engine, tx holdfast.Tx, l *runengine.ClaimedStep, moving func(id string)) error {
	if _, err := runengine.LocalOf(engine.Of(e)).Executor.Complete(ctx, store.DoerOf(tx), l, runengine.Ended{Output: []byte(`1`)}); err != nil {
		return err
	}
	moving(l.Run.ID)
	for waits := false; !waits; {
		if err := clock.Wait(ctx, time.Millisecond); err != nil {
			return err
		}
		if err := postgres.Raw(tx).QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks
			WHERE locktype = 'transactionid' AND NOT granted AND transactionid = pg_current_xact_id()::xid)`).Scan(&waits); err != nil {
			return err
		}
	}
	return nil
}

// Verifies that no run sleeps through a signal: each of many, from four processes, is sent
// while its run moves into the step that waits for it, and waits for that move to commit.
func TestManySignalsAimedAtTheMomentOfWaiting(t *testing.T) {
	t.Parallel()
	const processes = 4
	signals := testlevel.Pick(16, 400, 5000)
	url := holdfasttest.PostgreSQL(t)
	e := holdfasttest.OpenOn(t, holdfasttest.At(url), aimed())
	newBench(t, e, aimed()) // its definition is kept
	type line struct {
		from int
		text string
	}
	lines := make(chan line)
	var nodes []*testkit.Child
	for i := range processes {
		node := testkit.StartChild(t, "TestNodeProcess", nodeVar, url)
		nodes = append(nodes, node)
		go func() {
			for text := range node.Lines() {
				select {
				case lines <- line{i, text}:
				case <-t.Context().Done():
				}
			}
		}()
		node.Send("move - %d", signals/processes)
	}
	ids := make(map[string]bool)
	for ended := 0; ended < processes || len(ids) < signals; {
		var l line
		select {
		case l = <-lines:
		case <-time.After(time.Minute):
			t.Fatalf("only %d of %d signals were sent", len(ids), signals)
		}
		word, id, _ := strings.Cut(l.text, " ")
		switch {
		case word == "moving":
			nodes[(l.from+1)%processes].Send("send %s", id)
		case word == "sent" && strings.HasSuffix(id, " <nil>"):
			ids[strings.TrimSuffix(id, " <nil>")] = true
		case l.text == "moved <nil>":
			ended++
		default:
			t.Fatalf("process %d printed %q", l.from, l.text)
		}
	}
	for found := true; found; {
		var err error
		if found, err = run.WorkerOf(e).Step(t.Context(), store.Partition{}); err != nil {
			t.Fatal(err)
		}
	}
	asleep := 0
	for id := range ids {
		if l, err := runengine.Load(t.Context(), engine.Of(e), id); err != nil {
			t.Fatal(err)
		} else if l.Run.Status != "COMPLETED" {
			asleep++
		}
	}
	if asleep > 0 || len(ids) != signals {
		t.Errorf("of %d runs that got a signal while they moved, %d still wait", len(ids), asleep)
	}
}

// Verifies that of fifty who start a run under one key, from four processes, one does, and
// all are given the same run; and that in another workspace it is another.
func TestManyProcessesStartOnce(t *testing.T) {
	eachAt(t, func(t *testing.T, e *holdfast.Engine, db string) {
		var nodes []*testkit.Child
		for range 4 {
			nodes = append(nodes, testkit.StartChild(t, "TestNodeProcess", nodeVar, db))
		}
		for round := range 5 {
			for i, n := range nodes {
				n.Send("start key%d %d", round, []int{13, 13, 12, 12}[i])
			}
			created, seen := 0, map[string]bool{}
			for _, n := range nodes {
				var made, failed int
				var ids string
				if _, err := fmt.Sscan(n.ExpectPrefix("started"), &made, &failed, &ids); err != nil || failed > 0 {
					t.Fatal(err, failed)
				}
				created += made
				for _, id := range strings.Split(strings.TrimSuffix(ids, ","), ",") {
					seen[id] = true
				}
			}
			if created != 1 || len(seen) != 1 {
				t.Errorf("round %d: %d runs were created and %d distinct ids returned, want 1 and 1", round, created, len(seen))
			}
			r, made, err := simple().Start(holdfast.InWorkspace(t.Context(), "another"), e, order{"o", 1}, run.Key(fmt.Sprint("key", round)))
			if err != nil || !made || seen[r.ID] {
				t.Errorf("start in another workspace: created %v, %v", made, err)
			}
		}
	})
}

// stepOf waits until a run's step is held, or not, and returns it.
func stepOf(t *testing.T, e *holdfast.Engine, id string, yes func(runengine.Step) bool) runengine.ClaimedStep {
	t.Helper()
	for {
		l, err := runengine.Load(t.Context(), engine.Of(e), id)
		if err != nil {
			t.Fatal(err)
		}
		if yes(l.Step) {
			return l
		}
		if clock.Wait(t.Context(), 10*time.Millisecond) != nil {
			t.Fatalf("the step did not change: %+v", l.Step)
		}
	}
}

// Verifies that what a killed worker held is taken by another, which counts the attempt, and
// that of an opaque step the body is not begun again: it is uncertain.
func TestAKilledWorkersSteps(t *testing.T) {
	eachAt(t, func(t *testing.T, e *holdfast.Engine, db string) {
		defs := nodeDefs(nil, nil)
		ids := map[string]string{}
		for _, d := range defs {
			r, _, err := d.Start(t.Context(), e, 1)
			if err != nil {
				t.Fatal(err)
			}
			ids[d.ID()] = r.ID
		}
		first := testkit.StartChild(t, "TestNodeProcess", nodeVar, db)
		first.Send("work")
		first.Expect("body quiet "+ids["quiet@1"]+" 1", "body opaque "+ids["opaque@1"]+" 1")
		first.Kill()
		expire(t, e)
		if l := stepOf(t, e, ids["opaque@1"], func(runengine.Step) bool { return true }); !l.Step.Uncertain || l.Step.Holder != "" {
			t.Errorf("got opaque step %+v, want it uncertain", l.Step)
		}
		second := testkit.StartChild(t, "TestNodeProcess", nodeVar, db)
		second.Send("work")
		second.Expect("body quiet " + ids["quiet@1"] + " 2")
		second.Send("go")
		stepOf(t, e, ids["quiet@1"], func(s runengine.Step) bool {
			return s.Status == runengine.Completed && s.Crashes == 1 && s.Attempts == 2
		})
		if l := stepOf(t, e, ids["opaque@1"], func(runengine.Step) bool { return true }); l.Step.Attempts != 1 {
			t.Errorf("the opaque step began %d times, want 1", l.Step.Attempts)
		}
	})
}

// expire has all holds run out, and ends them.
func expire(t *testing.T, e *holdfast.Engine) {
	t.Helper()
	holdfasttest.Advance(t, e, 2*time.Minute)
	if _, err := runengine.LocalOf(engine.Of(e)).Executor.Expire(t.Context(), engine.Of(e), store.Partition{}); err != nil {
		t.Fatal(err)
	}
	holdfasttest.Advance(t, e, time.Minute)
}

// Verifies that a worker that was stopped past its hold, while another took the step and did
// it, records nothing when it goes on: there is one result.
func TestAStoppedWorkerRecordsNothing(t *testing.T) {
	eachAt(t, func(t *testing.T, e *holdfast.Engine, db string) {
		r, _, err := nodeDefs(nil, nil)[0].Start(t.Context(), e, 1)
		if err != nil {
			t.Fatal(err)
		}
		stopped := testkit.StartChild(t, "TestNodeProcess", nodeVar, db)
		stopped.Send("work")
		stopped.Expect("body quiet " + r.ID + " 1")
		storetest.Stop(t, e, stopped)
		expire(t, e)
		other := testkit.StartChild(t, "TestNodeProcess", nodeVar, db)
		other.Send("work")
		other.Expect("body quiet " + r.ID + " 2")
		other.Send("go")
		done := stepOf(t, e, r.ID, func(s runengine.Step) bool { return s.Status == runengine.Completed })
		stopped.Send("go")
		stopped.Signal(syscall.SIGCONT)
		// What the stopped one would write is refused: as its holder, here, too.
		late := done
		late.Step.Epoch, late.Step.Holder, late.Step.Status = 1, "stopped", runengine.Running
		if _, err := runengine.LocalOf(engine.Of(e)).Executor.Complete(t.Context(), engine.Of(e), &late, runengine.Ended{Output: []byte(`"late"`)}); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("the late holder got %v, want ErrLeaseLost", err)
		}
		if now := stepOf(t, e, r.ID, func(runengine.Step) bool { return true }); now.Run.Version != done.Run.Version || string(now.Step.Output) != `"quiet"` || now.Step.Attempts != 2 {
			t.Errorf("got step %+v", now.Step)
		}
	})
}

// Verifies that steps of workspaces on all shards are done, and that holds left on a shard are
// freed also by a node that would give no new workspace a place there.
func TestWorkersAndJanitorsServeEveryShard(t *testing.T) {
	path, ctx := holdfasttest.SQLite(t), t.Context()
	def := run.Define("one", "1", run.Task("t", func(context.Context, order) (int, error) { return 1, nil }, run.Idempotent()))
	many, err := holdfast.Open(ctx, sqlite.File(path), holdfast.Config{Shards: 8}, def)
	if err != nil {
		t.Fatal(err)
	}
	var all []*bench
	for i := range 16 {
		b := &bench{t: t, ctx: holdfast.InWorkspace(ctx, fmt.Sprint("w", i)), e: many, def: def}
		all = append(all, b.start())
		taken, err := b.executor().TakeDue(b.ctx, engine.Of(many), runengine.Ask{Handlers: map[string]runengine.Handled{b.live().Step.Handler: {}}, Holder: "me", Limit: 1, Lease: time.Minute})
		if err != nil || len(taken) != 1 {
			t.Fatal(taken, err)
		}
	}
	if shards, err := store.Shards(ctx, engine.Of(many)); err != nil || len(shards) < 2 {
		t.Fatalf("got shards %v, %v, want at least 2", shards, err)
	}
	if err := many.Close(); err != nil {
		t.Fatal(err)
	}
	one := holdfasttest.OpenOn(t, sqlite.File(path), def)
	holdfasttest.Advance(t, one, 2*time.Minute)
	engine.Of(one).Round(ctx)
	for _, b := range all {
		b.e = one
		if s := b.live().Step; s.Holder != "" || s.Lost != 1 {
			t.Errorf("lease was not released: %+v", s)
		}
	}
	holdfasttest.Advance(t, one, time.Minute) // the pause behind it
	testkit.Run(t, one)
	limit, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for i, b := range all {
		if r, err := run.Await(holdfast.InWorkspace(limit, fmt.Sprint("w", i)), one, b.id); err != nil || r.Status != "COMPLETED" {
			t.Fatalf("got run %s (%s), want COMPLETED: %v", r.Status, r.Error, err)
		}
	}
}

// Verifies that a starter that is killed at any operation leaves the key usable, is in the
// crash test of a whole run; and that a key of 256 characters, or of none, is refused.
func TestKeysThatAreNone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for _, key := range []string{"", strings.Repeat("k", 256), "a\x00b", "line\nbreak"} {
			if _, _, err := simple().Start(t.Context(), e, order{}, run.Key(key)); !errors.Is(err, holdfast.ErrValidation) {
				t.Errorf("key %q: got %v, want ErrValidation", key, err)
			}
		}
		if _, created, err := simple().Start(t.Context(), e, order{}, run.Key(strings.Repeat("k", 255))); err != nil || !created {
			t.Error(created, err)
		}
	})
}
