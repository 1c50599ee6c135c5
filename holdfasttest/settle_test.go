package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

const settledConfig = `
workflow: bill
owning_module: billing
status_types: [open, closing, closed]
initial_status: open
janitor: standard
steps:
  - {step_id: 10, step_key: close, status: open, successful_claim_state: [closing, open], successful_state: closed, action: Close, success_after_effect: Mail}
`

type bill struct{}

// settles is an engine with each capability, whose handlers fail the first time.
type settles struct {
	did   []string
	tried map[string]bool
}

// once fails the first time that something is tried.
func (s *settles) once(what string) error {
	if !s.tried[what] {
		s.tried[what] = true
		return errors.New("not yet")
	}
	s.did = append(s.did, what)
	return nil
}

func (s *settles) parts() (all []holdfast.Part, bills *lifecycle.Lifecycle[bill], asked *run.Definition, labels *batch.Kind[string, string]) {
	bills = lifecycle.MustParse[bill]([]byte(settledConfig)).Action("Close", func(ctx context.Context, a *lifecycle.Act[bill]) error {
		_, err := holdfast.Effect(ctx, "charge", func(context.Context, string) (int, error) { return 0, s.once("charge " + a.Entity.ID) }, holdfast.OnUnknownRetry())
		if a.Entity.ID == "unclear" && err == nil {
			_, err = holdfast.Effect(ctx, "refund", func(context.Context, string) (int, error) { return 0, errors.New("no answer") })
		}
		return err
	}, lifecycle.Journaled()).AfterEffect("Mail", func(_ context.Context, a *lifecycle.Act[bill]) error { return s.once("mail " + a.Entity.ID) })
	asked = run.Define("asked", "1", run.Wait("nap", 3*time.Hour), run.Signal("paid", "payment", run.Timeout(24*time.Hour)), run.Approval("ok", "OK?", run.For("manager"), run.Timeout(24*time.Hour)),
		run.Task("last", func(context.Context, any) (int, error) { return 1, s.once("end") }, run.Idempotent()))
	labels = batch.Define("label", func(_ context.Context, i *batch.Item[string]) (string, error) { return "", s.once("item " + i.Key) }, batch.Options{})
	reaction := stream.React("told", stream.Select{Pattern: "^order-"}, func(_ context.Context, d *stream.Delivery) error {
		if d.Name == "bad" {
			return holdfast.NonRetryable(errors.New("never"))
		}
		return s.once("react " + d.Stream)
	}, stream.Options{})
	return []holdfast.Part{bills, asked, labels, reaction}, bills, asked, labels
}

// must fails a test unless a call succeeded, and returns its result.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func second[T any](_ T, err error) error { return err }

// TestSettle verifies that Settle does the work of each capability with its retries and timers, in the context's
// workspace only, that it names what waits for somebody and lets no deadline pass, and that it goes on where somebody
// acted.
func TestSettle(t *testing.T) {
	storetestEach(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		s := &settles{tried: make(map[string]bool)}
		parts, bills, asked, labels := s.parts()
		hf, ctx := open(parts...), t.Context()
		settle := func() (kinds []string) {
			t.Helper()
			waiting, err := holdfasttest.Settle(ctx, hf)
			must(t, err)
			for _, w := range waiting {
				kinds = append(kinds, w.Kind)
			}
			slices.Sort(kinds)
			return kinds
		}
		fire := func(ctx context.Context, id string) {
			t.Helper()
			must(t, second(bills.Create(ctx, hf, id, bill{})))
			if _, err := bills.Fire(ctx, hf, id, "close", "system"); err == nil {
				t.Fatal("the first attempt succeeded")
			}
		}
		other := holdfast.InWorkspace(ctx, "other")
		fire(other, "o")
		fire(ctx, "b")
		fire(ctx, "unclear")
		must(t, second(stream.Append(ctx, hf, "order-1", stream.None, stream.Event{Name: "a"})))
		must(t, second(stream.Append(ctx, hf, "order-2", stream.None, stream.Event{Name: "bad"})))
		r, _, err := asked.Start(ctx, hf, 1)
		must(t, err)
		must(t, second(batch.PutWallet(ctx, hf, "w")))
		must(t, second(batch.Credit(ctx, hf, "w", 10, "c")))
		must(t, second(labels.Create(ctx, hf, "w", slices.Values([]batch.NewItem[string]{{Key: "1", Cost: 10}, {Key: "2", Cost: 10}}))))
		if got, want := settle(), []string{"blockedStream", "pausedBatch", "uncertainOperation", "waitingSignal"}; !slices.Equal(got, want) {
			t.Errorf("waiting are %q, want %q", got, want)
		}
		slices.Sort(s.did)
		if got := strings.Join(s.did, ", "); got != "charge b, charge unclear, item 1, mail b, react order-1" {
			t.Errorf("did %s", got)
		}
		must(t, run.Send(ctx, hf, r.ID, "payment", 1))
		must(t, second(batch.Credit(ctx, hf, "w", 10, "d")))
		if got, want := settle(), []string{"blockedStream", "pendingApproval", "uncertainOperation"}; !slices.Equal(got, want) {
			t.Errorf("waiting are %q, want %q", got, want)
		}
		holdfasttest.Advance(t, hf, 25*time.Hour) // the approval was not given
		if got, want := settle(), []string{"blockedStream", "failedRun", "uncertainOperation"}; !slices.Equal(got, want) {
			t.Errorf("waiting are %q, want %q", got, want)
		}
		if slices.Contains(s.did, "charge o") {
			t.Error("settled another workspace")
		}
		if _, err := holdfasttest.Settle(other, hf); err != nil || !slices.Contains(s.did, "mail o") {
			t.Errorf("did %q, %v", s.did, err)
		}
	})
}

// TestSettleNamesMissingHandlers verifies that work for which the engine has no part is named, and that work without an
// end is an error.
func TestSettleNamesMissingHandlers(t *testing.T) {
	storetestEach(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		s := &settles{tried: make(map[string]bool)}
		parts, _, _, _ := s.parts()
		hf := open(parts...)
		_, _, err := run.Define("gone", "1", run.Remote("far", "elsewhere", run.Idempotent())).Start(t.Context(), hf, 1)
		must(t, err)
		waiting, err := holdfasttest.Settle(t.Context(), hf)
		must(t, err)
		if len(waiting) != 1 || waiting[0].Kind != "unservedWork" || waiting[0].Subject != "handler elsewhere" {
			t.Errorf("waiting are %v", waiting)
		}
		loop := run.Define("loop", "1", run.Wait("nap", time.Minute), run.If("again", "true", "nap", "end"))
		hf = open(loop)
		_, _, err = loop.Start(t.Context(), hf, 1)
		must(t, err)
		if _, err := holdfasttest.Settle(t.Context(), hf); err == nil || !strings.Contains(fmt.Sprint(err), "does not settle") {
			t.Errorf("got %v, want that it does not settle", err)
		}
	})
}

// TestSettleRevertsStrayRows verifies that Settle, as a running engine, reverts entities that other code has put into a claim
// status: in Holdfast's table and in a user table, and only in its workspace.
func TestSettleRevertsStrayRows(t *testing.T) {
	own := strings.NewReplacer("workflow: bill", "workflow: parcel", "janitor: standard", "janitor: standard\nentity_table: parcels\ncolumns: {workspace: tenant}",
		", action: Close, success_after_effect: Mail", "").Replace(settledConfig)
	storetestEach(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		exec := func(hf *holdfast.Engine, texts ...string) {
			t.Helper()
			must(t, hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) (err error) {
				for _, text := range texts {
					if strings.HasSuffix(t.Name(), "sqlite") {
						err = errors.Join(err, second(sqlite.Raw(tx).ExecContext(ctx, strings.Replace(text, "holdfast.", "holdfast_", 1))))
					} else {
						err = errors.Join(err, second(postgres.Raw(tx).Exec(ctx, text)))
					}
				}
				return err
			}))
		}
		exec(open(), "CREATE TABLE parcels (id text, tenant text, status text, version bigint, PRIMARY KEY (tenant, id))",
			"INSERT INTO parcels (id, tenant, status) VALUES ('p', 'default', 'closing'), ('p', 'other', 'closing')")
		parts, bills, _, _ := (&settles{}).parts()
		parcels := lifecycle.MustParse[bill]([]byte(own))
		hf := open(append(parts, parcels)...)
		ctx := t.Context()
		other := holdfast.InWorkspace(ctx, "other")
		must(t, second(bills.Create(ctx, hf, "b", bill{})))
		must(t, second(bills.Create(other, hf, "b", bill{})))
		exec(hf, "UPDATE holdfast.entity SET status = 'closing' WHERE lifecycle = 'bill'")
		waiting, err := holdfasttest.Settle(ctx, hf)
		must(t, err)
		if len(waiting) > 0 {
			t.Errorf("waiting are %v", waiting)
		}
		for where, want := range map[context.Context]string{ctx: "open", other: "closing"} {
			b, err := bills.Get(where, hf, "b")
			must(t, err)
			p, err := parcels.Get(where, hf, "p")
			must(t, err)
			if b.Status != want || p.Status != want {
				t.Errorf("bill is %s, parcel is %s, want %s", b.Status, p.Status, want)
			}
		}
	})
}

// TestSettleHasAnOrder verifies that Settle does what is due in the same order whether or not time has passed since it became due:
// otherwise the points of Crash would differ between runs.
func TestSettleHasAnOrder(t *testing.T) {
	storetestEach(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		var did []string
		note := func(what string) (string, error) { did = append(did, what); return what, nil }
		started := run.Define("started", "1", run.Task("begin", func(context.Context, any) (string, error) { return note("step") }, run.Idempotent()))
		labels := batch.Define("label", func(context.Context, *batch.Item[string]) (string, error) { return note("item") }, batch.Options{Cost: batch.Free})
		told := stream.React("told", stream.Select{Pattern: "^order-"}, func(context.Context, *stream.Delivery) error { return second(note("event")) }, stream.Options{})
		hf := open(started, labels, told)
		for i, pause := range []time.Duration{0, 50 * time.Millisecond} {
			ctx := t.Context()
			did = nil
			_, _, err := started.Start(ctx, hf, nil)
			must(t, err)
			holdfasttest.Advance(t, hf, pause)
			must(t, second(stream.Append(ctx, hf, "order-1", stream.Any, stream.Event{Name: "made"})))
			holdfasttest.Advance(t, hf, pause)
			must(t, second(batch.PutWallet(ctx, hf, "acme")))
			must(t, second(labels.Create(ctx, hf, "acme", slices.Values([]batch.NewItem[string]{{Key: "i"}}), batch.ID(fmt.Sprint("b", i)))))
			holdfasttest.Advance(t, hf, pause)
			must(t, second(holdfasttest.Settle(ctx, hf)))
			if want := []string{"item", "event", "step"}; !slices.Equal(did, want) {
				t.Errorf("after %s: got %q, want %q", pause, did, want)
			}
		}
	})
}

// TestSettleNamesAnUndoThatFails verifies that Settle ends although an undo fails again and again, and names it.
func TestSettleNamesAnUndoThatFails(t *testing.T) {
	storetestEach(t, func(t *testing.T, open func(...holdfast.Part) *holdfast.Engine) {
		kind := batch.Define("k", func(context.Context, *batch.Item[string]) (string, error) {
			return "", holdfast.NonRetryable(errors.New("bad"))
		}, batch.Options{Cost: batch.Free}).
			Undo(func(context.Context, *batch.Undone[string, string]) error { return errors.New("cannot undo") })
		hf := open(kind)
		must(t, second(batch.PutWallet(t.Context(), hf, "w")))
		must(t, second(kind.Create(t.Context(), hf, "w", slices.Values([]batch.NewItem[string]{{Key: "a"}}), batch.ID("b"))))
		waiting, err := holdfasttest.Settle(t.Context(), hf)
		if err != nil || len(waiting) != 1 || waiting[0].Kind != "failingTeardown" || !strings.Contains(waiting[0].Reason, "cannot undo") {
			t.Errorf("settle returned %v, %v, want the teardown that fails", waiting, err)
		}
	})
}

func storetestEach(t *testing.T, f func(*testing.T, func(...holdfast.Part) *holdfast.Engine)) {
	where := map[string]func(testing.TB) string{"sqlite": holdfasttest.SQLite, "postgres": holdfasttest.PostgreSQL}
	for _, name := range testlevel.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := holdfasttest.At(where[name](t))
			f(t, func(parts ...holdfast.Part) *holdfast.Engine { return holdfasttest.OpenOn(t, at, parts...) })
		})
	}
}
