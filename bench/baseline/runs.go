package baseline

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Runner is a system with runs. Starting a run leases its first step, and ending a step leases
// the next one, each in one transaction with two events.
type Runner interface {
	// StartRun starts a run. If there is a run with its key, it is refused.
	StartRun(ctx context.Context, a StartRun) error
	// FinishStep ends a leased step, and begins Next. If Next is "", the run ends.
	FinishStep(ctx context.Context, a FinishStep) error
}

// StartRun is a run to start.
type StartRun struct {
	Run, Key, Input, Step, Holder string
	Lease                         time.Duration
}

// FinishStep is the end of a step.
type FinishStep struct {
	Run, Step, Output, Next, Holder string
	Lease                           time.Duration
}

// StartRun starts a run.
func (p *Postgres) StartRun(ctx context.Context, a StartRun) error {
	_, err := p.number(ctx, "run.start", newID(), newID(), a.Run, a.Key, a.Input, a.Step, a.Holder, a.Lease.Milliseconds())
	return err
}

// FinishStep ends a step.
func (p *Postgres) FinishStep(ctx context.Context, a FinishStep) error {
	_, err := p.number(ctx, "run.step", newID(), newID(), a.Run, a.Step, a.Output, a.Next, a.Holder, a.Lease.Milliseconds())
	return err
}

func (q lite) startRun(ctx context.Context, a StartRun) error {
	at := clock.Now().UnixMilli()
	var version int64
	if err := absent(q("run.start").QueryRowContext(ctx, shard, workspace, a.Run, a.Key, a.Input, a.Step, at).Scan(&version)); err != nil {
		return err
	}
	if err := q.begin(ctx, a.Run, a.Step, 1, a.Input, a.Holder, a.Lease, at); err != nil {
		return err
	}
	return q.twoEvents(ctx, a.Run, a.Step, version, "created", "stepStarted", at)
}

func (q lite) finishStep(ctx context.Context, a FinishStep) error {
	at := clock.Now().UnixMilli()
	var n, version int64
	if err := absent(q("run.done").QueryRowContext(ctx, shard, workspace, a.Run, a.Step, a.Output, at).Scan(&n)); err != nil {
		return err
	}
	if err := absent(q("run.move").QueryRowContext(ctx, shard, workspace, a.Run, a.Next, a.Output, at).Scan(&version)); err != nil {
		return err
	}
	if a.Next != "" {
		if err := q.begin(ctx, a.Run, a.Next, n+1, a.Output, a.Holder, a.Lease, at); err != nil {
			return err
		}
	}
	return q.twoEvents(ctx, a.Run, a.Step, version, "stepCompleted", "stepStarted", at)
}

func (q lite) begin(ctx context.Context, run, step string, n int64, input, holder string, lease time.Duration, at int64) error {
	_, err := q("run.add").ExecContext(ctx, shard, workspace, run, step, n, input, holder, at+lease.Milliseconds(), at)
	return err
}

// twoEvents writes two events. The second one has the version.
func (q lite) twoEvents(ctx context.Context, run, step string, version int64, first, second string, at int64) error {
	data := fmt.Sprintf(`{"step":%s,"visit":1,"status":"RUNNING"}`, quote(step))
	if err := q.history(ctx, "$run/"+run, version-1, first, data, at); err != nil {
		return err
	}
	return q.history(ctx, "$run/"+run, version, second, data, at)
}
