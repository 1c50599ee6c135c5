package scope_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/stream"
)

const billConfig = `{
  "workflow": "bill", "owning_module": "billing", "initial_status": "open", "status_types": ["open", "closing", "closed"],
  "steps": [{"step_id": 1, "step_key": "close", "status": "open", "claim_state": ["closing", "open"], "successful_state": "closed", "action": "Close"}]
}`

type tallied struct {
	Closed int64            `json:"closed"`
	Steps  int64            `json:"steps"`
	Items  map[string]int64 `json:"items"`
	Events []string         `json:"events"`
}

// program is one with all the capabilities, whose handlers change one scope in the
// transaction of what they do. Each fails the first time, behind that change.
type program struct {
	bills *lifecycle.Lifecycle[struct{}]
	scans *batch.Kind[int, int]
	chase *run.Definition
	mails holdfast.Part

	mu     sync.Mutex
	failed map[string]bool
}

var errFirst = errors.New("not the first time")

// once fails the first time that something is done.
func (p *program) once(what string, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || p.failed[what] {
		return err
	}
	p.failed[what] = true
	return errFirst
}

func tallyIn(d holdfast.Doer) scope.Scope[tallied] {
	return scope.In[tallied](d, scope.Org, "acme")
}

func newProgram() *program {
	p := &program{failed: make(map[string]bool)}
	p.bills = lifecycle.MustParse[struct{}]([]byte(billConfig)).RecoveredBy().Action("Close", func(_ context.Context, a *lifecycle.Act[struct{}]) error {
		a.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
			_, err := tallyIn(tx).Inc(ctx, "closed", 1)
			return p.once("bill", err)
		})
		return nil
	}, lifecycle.Transactional())
	p.chase = run.Define("chase", "1", run.Task("count", func(ctx context.Context, _ int) (int, error) {
		return 1, run.WriteTx(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			_, err := tallyIn(tx).Atomic(ctx, func(_ context.Context, t tallied) (tallied, error) {
				t.Steps++
				return t, nil
			})
			return p.once("step", err)
		})
	}, run.Transactional(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 3, Backoff: time.Millisecond})))
	p.scans = batch.Define("scan", func(_ context.Context, i *batch.Item[int]) (int, error) {
		i.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
			_, err := tallyIn(tx).SetRecord(ctx, "items", i.Key, i.Input)
			return p.once("item", err)
		})
		return i.Input, nil
	}, batch.Options{Retry: holdfast.RetryPolicy{Backoff: time.Millisecond}})
	p.mails = stream.React("mails", stream.Select{Pattern: "^letters$"}, func(_ context.Context, d *stream.Delivery) error {
		d.WriteTx(func(ctx context.Context, tx holdfast.Tx) error {
			_, err := tallyIn(tx).Push(ctx, "events", d.Event.Name)
			return p.once("event", err)
		})
		return nil
	}, stream.Options{Retry: holdfast.RetryPolicy{Backoff: time.Millisecond}})
	return p
}

// TestInsideOtherHandlers verifies that a handler of a lifecycle, a run, a batch and a
// reaction changes a scope with what it does: a try that fails changes nothing, and the
// one that is kept changes it once.
func TestInsideOtherHandlers(t *testing.T) {
	for name, db := range map[string]func(testing.TB) holdfast.Database{
		"sqlite":   func(t testing.TB) holdfast.Database { return holdfasttest.At(holdfasttest.SQLite(t)) },
		"postgres": func(t testing.TB) holdfast.Database { return holdfasttest.At(holdfasttest.PostgreSQL(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProgram()
			hf := holdfasttest.OpenOn(t, db(t), p.bills, p.chase, p.scans, p.mails)
			testkit.Run(t, hf)
			p.everything(t, hf)
			want := tallied{Closed: 1, Steps: 1, Items: map[string]int64{"a": 1, "b": 2}, Events: []string{"one", "two"}}
			for c, err := range tallyIn(hf).Watch(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if s := c.State; s.Closed == want.Closed && s.Steps == want.Steps && len(s.Items) == 2 && slices.Equal(s.Events, want.Events) {
					break
				}
			}
			s, err := tallyIn(hf).Get(t.Context())
			if err != nil || s.Version != 5 {
				t.Errorf("six changes led to version %d, want 5: %v", s.Version, err)
			}
		})
	}
}

// everything has each handler do its work, and waits for what can be waited for.
func (p *program) everything(t *testing.T, hf *holdfast.Engine) {
	t.Helper()
	ctx := t.Context()
	if _, err := p.bills.Create(ctx, hf, "b1", struct{}{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.bills.Fire(ctx, hf, "b1", "close", "admin"); err == nil {
		t.Fatal("the first attempt succeeded, want an error")
	}
	if s, err := tallyIn(hf).Get(ctx); err != nil || s.State.Closed != 0 {
		t.Fatalf("a failed attempt left %+v, %v", s, err)
	}
	if _, err := p.bills.Fire(ctx, hf, "b1", "close", "admin"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.chase.Start(ctx, hf, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := batch.PutWallet(ctx, hf, "w", batch.AllowNegative()); err != nil {
		t.Fatal(err)
	}
	work := func(yield func(batch.NewItem[int]) bool) {
		_ = yield(batch.NewItem[int]{Key: "a", Cost: batch.Free, Input: 1}) && yield(batch.NewItem[int]{Key: "b", Cost: batch.Free, Input: 2})
	}
	if _, err := p.scans.Create(ctx, hf, "w", work); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Append(ctx, hf, "letters", stream.Any, stream.Event{Name: "one"}, stream.Event{Name: "two"}); err != nil {
		t.Fatal(err)
	}
}
