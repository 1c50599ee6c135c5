package holdfasttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// crashWorker runs cases sequentially on its own database. Each case has its own workspace, so the engine is reopened
// only after a crash.
type crashWorker struct {
	s    Scenario
	db   *crash.OpenDatabase
	plan crash.Plan
	log  *slog.Logger
	// keep leaves the database open when the engine crashes and reopens only the engine: opening a database takes as
	// long as fifty writes.
	keep bool

	hf *holdfast.Engine // nil if it is not open
}

// crashCases numbers the cases of all workers, for the names of their workspaces.
var crashCases atomic.Int64

func newCrashWorker(s Scenario, db holdfast.Database, log *slog.Logger) *crashWorker {
	return &crashWorker{s: s, db: crash.StayOpen(store.DatabaseOf(db)), log: log, keep: testlevel.Current() < testlevel.Crash}
}

// close closes the engine, which may have crashed, and the database.
func (w *crashWorker) close() error { return errors.Join(w.shut(), w.db.Close()) }

// move continues with another database.
func (w *crashWorker) move(db holdfast.Database) error {
	w.plan.Disarm()
	err := w.close()
	w.db = crash.StayOpen(store.DatabaseOf(db))
	return err
}

// audit checks the database against the invariants and returns the violations by workspace. One check for all cases
// takes a third of the time of a check after each.
func (w *crashWorker) audit() (map[string]error, error) {
	w.plan.Disarm()
	ctx, cancel := bounded(context.Background())
	defer cancel()
	if err := w.alive(ctx); err != nil {
		return nil, err
	}
	report, err := w.hf.Check(ctx)
	broken := make(map[string]error)
	for _, v := range report.Violations {
		broken[v.Workspace] = errors.Join(broken[v.Workspace], errors.New(v.String()))
	}
	return broken, err
}

func (w *crashWorker) shut() error {
	if w.hf == nil {
		return nil
	}
	hf := w.hf
	w.hf = nil
	return hf.Close()
}

// errLeft is the error of a case whose scenario ended its goroutine.
var errLeft = errors.New("the scenario ended its goroutine (t.Fatal, t.Skip or runtime.Goexit): return an error instead")

// runAlone runs one case in its own goroutine, so that a scenario that ends it fails this case and no other.
func (w *crashWorker) runAlone(strikes []crash.Strike) crashResult {
	result := make(chan crashResult, 1)
	go func() {
		r := crashResult{strikes: strikes, err: errLeft}
		defer func() {
			if errors.Is(r.err, errLeft) {
				r.points, _ = w.plan.Disarm()
			}
			result <- r
		}()
		r = w.run(strikes)
	}()
	return <-result
}

// run runs one case and checks its result.
func (w *crashWorker) run(strikes []crash.Strike) crashResult {
	workspace := fmt.Sprintf("case-%09d", crashCases.Add(1))
	ctx := holdfast.InWorkspace(context.Background(), workspace)
	w.plan.Disarm()
	err := w.alive(ctx)
	if err == nil {
		err = engine.Of(w.hf).Reactions().RegisterIn(ctx)
	}
	if err == nil {
		w.plan.Arm(strikes...)
		err = w.drive(ctx)
	}
	points, left := w.plan.Disarm()
	if err == nil && left > 0 {
		err = fmt.Errorf("%w: %d left", errUnreached, left)
	}
	if err == nil {
		err = w.judge(ctx)
	}
	return crashResult{workspace, strikes, points, err}
}

// judge runs the Check of the scenario.
func (w *crashWorker) judge(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return w.s.Check(ctx, w.hf)
}

// crashTries is how often a client repeats its request. A case has at most two faults, and a permanent fault ends
// with the engine that it hits.
const crashTries = 16

// drive makes the request until it is done, and then performs the remaining background work. The result of a call on
// a crashed engine does not count, because a crashed process would not have responded.
func (w *crashWorker) drive(ctx context.Context) error {
	done := false
	var err error
	for range crashTries {
		if err = w.again(ctx); err != nil {
			continue
		}
		if !done {
			err = w.call(ctx, w.s.Do)
			done = !w.plan.Dead() && (err == nil || w.accepts(err))
		}
		if w.plan.Dead() {
			continue
		}
		failed := err
		if err = w.call(ctx, w.s.Recover); err == nil && done && !w.plan.Dead() {
			return nil
		}
		if err == nil && !done {
			err = failed
		}
	}
	return fmt.Errorf("the scenario still fails after %d recoveries: %w", crashTries, err)
}

// again reopens the engine and recovers, if the engine crashed.
func (w *crashWorker) again(ctx context.Context) error {
	if w.hf != nil && !w.plan.Dead() {
		return nil
	}
	if err := w.alive(ctx); err != nil {
		return err
	}
	err := w.call(ctx, w.s.Recover)
	if w.plan.Dead() {
		return crash.ErrCrashed
	}
	return err
}

// alive opens the engine, if it is not open or has crashed.
func (w *crashWorker) alive(ctx context.Context) error {
	if w.hf != nil && !w.plan.Dead() {
		return nil
	}
	if err := w.shut(); err != nil {
		return err
	}
	if !w.keep {
		if err := w.db.Close(); err != nil {
			return err
		}
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	var parts []holdfast.Part
	if w.s.Parts != nil {
		parts = w.s.Parts()
	}
	hf, err := holdfast.Open(ctx, store.HandleDatabase(crash.Wrap(w.db, &w.plan)), holdfast.Config{Log: w.log}, parts...)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	engine.Of(hf).IgnoreUnserved() // the check for unserved work would add points
	w.hf = hf
	return nil
}

func (w *crashWorker) call(ctx context.Context, f func(context.Context, *holdfast.Engine) error) error {
	if f == nil {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	ctx, end := w.plan.Request(ctx)
	defer end()
	return f(ctx, w.hf)
}

func (w *crashWorker) accepts(err error) bool {
	for _, a := range w.s.Accepts {
		if errors.Is(err, a) {
			return true
		}
	}
	return false
}
