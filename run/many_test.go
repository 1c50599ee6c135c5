package run_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/sqlite"
)

// counting is a database that counts what is written through it, by verb.
type counting struct {
	store.Database
	mu      sync.Mutex
	wrote   map[string]int
	reading func(store.Command) // nil, or called before each read
	writing func(store.Command) // nil, or called before each write
	done    func(store.Command) // nil, or called after each command, before its caller has the result

	deadlines []deadline // of the writes
}

// deadline is the time by which a command must end.
type deadline struct {
	name string
	time time.Time
}

func (c *counting) Open(ctx context.Context, o store.Options) (store.Store, error) {
	s, err := c.Database.Open(ctx, o)
	return &countingStore{s, c}, err
}

func (c *counting) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrote[what]++
}

// taken returns what was written since it was last called.
func (c *counting) taken() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.wrote
	c.wrote = make(map[string]int)
	return was
}

type countingStore struct {
	store.Store
	by *counting
}

func (s *countingStore) Base() store.Store { return s.Store }

func (s *countingStore) Do(ctx context.Context, c store.Command) error {
	if c.Decl().Lane == store.Write {
		s.by.count(c.Decl().Name)
		if at, ok := ctx.Deadline(); ok {
			s.by.mu.Lock()
			s.by.deadlines = append(s.by.deadlines, deadline{c.Decl().Name, at})
			s.by.mu.Unlock()
		}
		if s.by.writing != nil {
			s.by.writing(c)
		}
	} else if s.by.reading != nil {
		s.by.reading(c)
	}
	err := s.Store.Do(ctx, c)
	if s.by.done != nil {
		s.by.done(c)
	}
	return err
}

func (s *countingStore) Update(ctx context.Context, f func(context.Context, store.Conn) error) error {
	s.by.count("update")
	return s.Store.Update(ctx, f)
}

// five is a run of five plain steps.
func five() *run.Definition {
	var steps []run.Step
	for i := range 5 {
		steps = append(steps, run.Task(fmt.Sprint("s", i), func(context.Context, any) (int, error) { return i, nil }, run.Idempotent()))
	}
	return run.Define("five", "1", steps...)
}

// Verifies that a run of five plain steps on the node that starts it is six transactions:
// its start, and one a step; also where there are very many finished runs.
func TestARunCostsItsStepsAndNothingElse(t *testing.T) {
	finished := testlevel.Pick(2_000, 20_000, 1_000_000)
	for name, where := range storetest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &counting{Database: store.DatabaseOf(holdfasttest.At(where(t))), wrote: make(map[string]int)}
			def := five()
			e := holdfasttest.OpenOn(t, store.HandleDatabase(db), def)
			testkit.Run(t, e)
			const each = 20
			runAndCount(t, e, db, def, each, false) // the first may start before the engine runs
			runAndCount(t, e, db, def, each, true)
			fill(t, e, name, finished)
			runAndCount(t, e, db, def, each, true)
		})
	}
}

// Verifies that a run which starts while the node looks for work is taken at once all the
// same: who looks does not keep the room of the others.
func TestARunThatStartsDuringALookIsTakenAtOnce(t *testing.T) {
	for name, where := range storetest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var hold atomic.Bool
			looks, goOn := make(chan struct{}, 100), make(chan struct{})
			db := &counting{Database: store.DatabaseOf(holdfasttest.At(where(t))), wrote: make(map[string]int), reading: func(c store.Command) {
				if hold.Load() && pollsSteps(c) {
					looks <- struct{}{}
					<-goOn
				}
			}}
			release := sync.OnceFunc(func() { close(goOn) })
			defer release()
			def := five()
			e := holdfasttest.OpenOn(t, store.HandleDatabase(db), def)
			testkit.Run(t, e)
			runAndCount(t, e, db, def, 1, false)
			hold.Store(true)
			var waits run.Run
			err := e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) (err error) {
				waits, _, err = def.Start(ctx, tx, 1) // not taken at once: it has yet to be committed
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			<-looks
			// A look that had begun before it was to be held may have found the run: what
			// it writes is not counted.
			if r, err := run.Get(t.Context(), e, waits.ID); err != nil {
				t.Fatal(err)
			} else if r.Status != "PENDING" {
				awaitStatus(t, e, waits.ID, "COMPLETED")
			}
			hold.Store(false)
			runAndCount(t, e, db, def, 3, true)
			release()
			awaitStatus(t, e, waits.ID, "COMPLETED")
		})
	}
}

// pollsSteps reports whether a read polls for the steps of [five]: there are other
// workers, for calls and transitions.
func pollsSteps(c store.Command) bool {
	if c.Decl().Name != "runs.list_ready" {
		return false
	}
	var args store.Args
	c.Bind(&args)
	return strings.Contains(fmt.Sprint(args.Values(0)), "five")
}

// runAndCount runs n runs, one after the other, and checks the writes.
func runAndCount(t *testing.T, e *holdfast.Engine, db *counting, def *run.Definition, n int, exact bool) {
	t.Helper()
	db.taken()
	for range n {
		r, _, err := def.Start(t.Context(), e, 1)
		if err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, r.ID, "COMPLETED")
	}
	wrote := db.taken()
	delete(wrote, "runs.put_definition") // by the first
	delete(wrote, "workspaces.assign_shard")
	if exact && (wrote["runs.start_at_step"] != n || wrote["runs.finish_step"] != 5*n || len(wrote) != 2) {
		t.Errorf("%d runs of five steps wrote %v", n, wrote)
	}
}

// fill makes finished runs, each with its step and its history.
func fill(t *testing.T, e *holdfast.Engine, name string, n int) {
	t.Helper()
	const page = 50_000
	for from := 0; from < n; from += page {
		err := e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			for _, text := range fills[name] {
				var err error
				if name == "postgres" {
					_, err = postgres.Raw(tx).Exec(ctx, text, from, min(page, n-from))
				} else {
					_, err = sqlite.Raw(tx).ExecContext(ctx, text, from, min(page, n-from))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if name == "postgres" {
		err := e.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			_, err := postgres.Raw(tx).Exec(ctx, `ANALYZE`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

var fills = map[string][]string{
	"postgres": {
		`INSERT INTO holdfast.run (shard, workspace, id, definition, key, status, version, input, state, memo, step, visit, cancel_requested, created_at, started_at, finished_at, updated_at)
		 SELECT 0, 'default', 'run_0' || n, 'five@1', 'old' || n, 'COMPLETED', 0, '{}', '{}', '{}', 's4', 1, false, now(), now(), now(), now() FROM generate_series($1::int + 1, $1::int + $2::int) n`,
		`INSERT INTO holdfast.step (shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, epoch, deaths, timeout, begun, uncertain, safety, unknown, created_at, finished_at)
		 SELECT 0, 'default', 'run_0' || n, 's4', 1, 1, 'task', 'five@1/s4', 'COMPLETED', '{}', 1, 0, 1, 0, 1000, 0, false, '', 'hold', now(), now() FROM generate_series($1::int + 1, $1::int + $2::int) n`,
		`INSERT INTO holdfast.history (shard, id, n, workspace, stream, version, name, data, at)
		 SELECT 0, gen_random_uuid(), 0, 'default', '$run/run_0' || n, 0, 'created', '{}', now() FROM generate_series($1::int + 1, $1::int + $2::int) n`,
	},
	"sqlite": {
		`WITH RECURSIVE g(n) AS (SELECT ?1 + 1 UNION ALL SELECT n + 1 FROM g WHERE n < ?1 + ?2)
		 INSERT INTO holdfast_run (shard, workspace, id, definition, key, status, version, input, state, memo, step, visit, cancel_requested, created_at, started_at, finished_at, updated_at)
		 SELECT 0, 'default', 'run_0' || n, 'five@1', 'old' || n, 'COMPLETED', 0, '{}', '{}', '{}', 's4', 1, 0, 1, 1, 1, 1 FROM g`,
		`WITH RECURSIVE g(n) AS (SELECT ?1 + 1 UNION ALL SELECT n + 1 FROM g WHERE n < ?1 + ?2)
		 INSERT INTO holdfast_step (shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, epoch, deaths, timeout, begun, uncertain, safety, unknown, created_at, finished_at)
		 SELECT 0, 'default', 'run_0' || n, 's4', 1, 1, 'task', 'five@1/s4', 'COMPLETED', '{}', 1, 0, 1, 0, 1000, 0, 0, '', 'hold', 1, 1 FROM g`,
		`WITH RECURSIVE g(n) AS (SELECT ?1 + 1 UNION ALL SELECT n + 1 FROM g WHERE n < ?1 + ?2)
		 INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, at)
		 SELECT 0, randomblob(16), 0, 'default', '$run/run_0' || n, 0, 'created', '{}', 1 FROM g`,
	},
}
