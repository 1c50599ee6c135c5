package runengine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

type applyPlanArgs struct {
	run          string
	version      int64
	how, step    string
	visit, epoch int64
	holder       string
	lease        time.Duration
	plan         string

	names, wakes []string
	over         bool          // the run ends
	held         time.Duration // the lease duration of the step that it takes
}

type moved struct {
	applied bool
	version int64
	until   time.Time // the end of the lease of the step that it takes
	now     time.Time // the database's clock
	since   time.Time // this node's clock before the command was sent
}

type startArgs struct {
	run, definition, key, input string
	holder                      string
	lease                       time.Duration
	plan                        string

	names, wakes []string
	over         bool
	held         time.Duration
}

type started struct {
	applied bool
	run     string // the new run or, if not applied, the run that was started with the key before; "" if none is visible yet
	moved
}

var (
	applyPlanVerb = store.NewVerb(store.Decl{Name: "runs.apply_plan", Group: true, Events: store.HistoryEvents},
		func(a applyPlanArgs) []string { return []string{row(a.run)} },
		func(a applyPlanArgs, args *store.Args) {
			args.Text("run", a.run)
			args.Int("version", a.version)
			args.Text("how", a.how)
			args.Text("step", a.step)
			args.Int("visit", a.visit)
			args.Int("epoch", a.epoch)
			args.Text("holder", a.holder)
			args.Int("lease", a.lease.Milliseconds())
			args.Text("plan", a.plan)
		},
		scanMoved).RecoverWith(func(a applyPlanArgs, k store.CommitProof) moved {
		return moved{applied: true, version: k.Version, until: k.At.Add(a.held), now: k.At}
	}).
		Wakes(func(a applyPlanArgs) []string { return woken(a.run, a.wakes, a.over) }).
		Emits(func(a applyPlanArgs) store.Emission { return emits(a.run, a.names) })
	startVerb = store.NewVerb(store.Decl{Name: "runs.start", Group: true, Events: store.HistoryEvents},
		func(a startArgs) []string { return startRows(a.run, a.key) },
		func(a startArgs, args *store.Args) {
			args.Text("run", a.run)
			args.Text("definition", a.definition)
			args.MaybeText("key", a.key)
			args.Text("input", a.input)
			args.Text("holder", a.holder)
			args.Int("lease", a.lease.Milliseconds())
			args.Text("plan", a.plan)
		},
		scanStarted).RecoverWith(func(a startArgs, k store.CommitProof) started {
		return started{true, a.run, moved{applied: true, version: k.Version, until: k.At.Add(a.held), now: k.At}}
	}).
		Wakes(func(a startArgs) []string { return woken(a.run, a.wakes, a.over) }).
		Emits(func(a startArgs) store.Emission { return emits(a.run, a.names) })
)

func scanMoved(m *moved, r store.Row) error {
	m.applied = r.Applied()
	return r.Scan(&m.version, &m.until, &m.now)
}

func scanStarted(s *started, r store.Row) error {
	s.applied = r.Applied()
	return r.Scan(&s.run, &s.version, &s.until, &s.now)
}

// startRows returns the row that a start locks.
func startRows(run, key string) []string {
	if key != "" {
		return []string{"run-key/" + key}
	}
	return []string{row(run)}
}

// woken returns the topics that a move of a run wakes.
func woken(run string, more []string, over bool) []string {
	topics := append(more, ProgressTopic(run))
	if over {
		topics = append(topics, EndTopic(run))
	}
	return topics
}

func emits(run string, names []string) store.Emission {
	return store.Emission{Stream: Stream(run), Names: names}
}

// apply applies a plan.
func (k *Executor) apply(ctx context.Context, d store.Doer, l *ClaimedStep, c *planner, by Taker) (m moved, err error) {
	if err := c.finish(); err != nil {
		return moved{}, err
	}
	since := clock.OfMachine()
	if a, plain := c.finishesStep(l, by); plain && !k.PlansOnly {
		if a.acted || a.policy != "" {
			m, err = finishOpaqueStepVerb.DoAt(ctx, d, l.partition(), a)
		} else {
			m, err = finishStepVerb.DoAt(ctx, d, l.partition(), a.finishStepArgs)
		}
		m.since = since
		return m, err
	}
	text, err := c.encoded()
	if err != nil {
		return moved{}, err
	}
	held := min(by.Lease, l.Step.Timeout)
	if c.added != nil {
		held = min(by.Lease, time.Duration(c.added.Timeout)*time.Millisecond)
	}
	m, err = applyPlanVerb.DoAt(ctx, d, l.partition(), applyPlanArgs{run: l.Run.ID, version: l.Run.Version, how: c.how, step: l.Step.Name, visit: l.Step.Visit, epoch: l.Step.Epoch,
		holder: by.Holder, lease: by.Lease, plan: text, names: c.names(), wakes: c.wakes, over: c.plan.Run.Over, held: held})
	m.since = since
	return m, err
}

// after returns the run after a plan was applied, with the step that the plan took or, if it took
// none, the step that it changed.
func (c *planner) after(l *ClaimedStep, m moved) ClaimedStep {
	next := ClaimedStep{Shard: l.Shard, Run: c.run, Step: c.step, memo: &c.memo}
	next.Run.Version = m.version
	next.Run.memo = c.plan.Run.Memo
	next.Run.UpdatedAt = m.now
	next.since = m.since
	if next.Run.StartedAt.IsZero() && c.run.Status != Pending && c.run.Status != Cancelled {
		next.Run.StartedAt = m.now
	}
	if next.Run.FinishedAt = (time.Time{}); Over(c.run.Status) {
		next.Run.FinishedAt = m.now
	}
	switch {
	case c.added != nil:
		a := c.added
		next.Step = Step{Name: a.Name, Visit: a.Visit, N: a.N, Type: workflow.Type(a.Type), Handler: a.Handler, Status: a.Status, Input: a.Input, Attempts: a.Attempts,
			Epoch: 1, Until: m.until, Timeout: time.Duration(a.Timeout) * time.Millisecond, Begun: a.Begun, Safety: a.Safety, Unknown: a.Unknown}
		next.taken = true
	case c.plan.Touch != nil && c.plan.Touch.Lease == "take":
		next.Step.Epoch++
		if c.plan.Body != nil {
			next.Step.Begun++
		}
		next.Step.Attempts, next.Step.Until = c.plan.Touch.Attempts, m.until
		next.taken = true
	}
	return next
}
