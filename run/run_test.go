package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/run"
)

type order struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

func awaitStatus(t *testing.T, hf *holdfast.Engine, id, status string) run.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := run.Await(ctx, hf, id)
	if err != nil || string(r.Status) != status {
		steps, _ := holdfast.Collect(run.ListSteps(t.Context(), hf, id))
		t.Fatalf("got run %s (%s), want %s: %v\n%+v", r.Status, r.Error, status, err, steps)
	}
	return r
}

// Verifies that a run takes its steps in order, with a condition that loops, a wait, a
// signal and an approval, and that what each brought is there for the next.
func TestARunFromStartToEnd(t *testing.T) {
	def := run.Define("chase", "1",
		run.Task("remind", func(ctx context.Context, o order) (map[string]int, error) {
			info, _ := run.Of(ctx)
			return map[string]int{"n": info.Visit}, run.Patch(ctx, map[string]any{"reminded": info.Visit})
		}, run.Idempotent()),
		run.If("enough", "state.reminded >= 2", "pause", "remind"),
		run.Wait("pause", 10*time.Millisecond),
		run.Signal("paid", "payment", run.Timeout(time.Hour)),
		run.Approval("ask", "=\"Close \" + input.id + \"?\"", run.Timeout(time.Hour), run.For("manager")),
		run.Task("close", func(_ context.Context, in struct {
			Paid int `json:"paid"`
		}) (string, error) {
			return fmt.Sprint("closed with ", in.Paid), nil
		}, run.Idempotent(), run.Input(map[string]string{"paid": "=steps.paid.output.cents"})),
	)
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		testkit.Run(t, hf)
		r, created, err := def.Start(ctx, hf, order{"o1", 500}, run.Key("k"))
		if err != nil || !created {
			t.Fatal(created, err)
		}
		if err := run.Send(ctx, hf, r.ID, "payment", order{"o1", 700}, run.SignalID("s1")); err != nil {
			t.Fatal(err)
		}
		var asked []run.ApprovalRequest
		testkit.Eventually(t, "the approval is pending", func() bool {
			asked, err = holdfast.Collect(run.ListApprovals(ctx, hf, run.ApprovalFilter{Run: r.ID}))
			return err != nil || len(asked) == 1
		})
		if err != nil || asked[0].Prompt != "Close o1?" {
			t.Fatalf("got approvals %+v, %v", asked, err)
		}
		if _, err := run.Decide(ctx, hf, asked[0].ID, run.Decision{Status: run.Approved, Requester: "clerk"}, run.By("eve")); !errors.Is(err, holdfast.ErrForbidden) {
			t.Errorf("decision by a clerk: got %v, want ErrForbidden", err)
		}
		if a, err := run.Decide(ctx, hf, asked[0].ID, run.Decision{Status: run.Approved, Requester: "manager"}, run.By("ann")); err != nil || a.Actor != "ann" {
			t.Fatalf("got %+v, %v", a, err)
		}
		end := awaitStatus(t, hf, r.ID, "COMPLETED")
		var output string
		if err := json.Unmarshal(end.Output, &output); err != nil || output != "closed with 700" {
			t.Errorf("got output %s, %v", end.Output, err)
		}
		if steps, err := holdfast.Collect(run.ListSteps(ctx, hf, r.ID)); err != nil || steps[2].Name != "remind" || steps[2].Visit != 2 || steps[4].Name != "pause" {
			t.Errorf("got steps %+v, %v", steps, err)
		}
		again, created, err := def.Start(ctx, hf, order{"o1", 500}, run.Key("k"))
		if err != nil || created || again.ID != r.ID {
			t.Errorf("second start returned %v, created %v, %v", again.ID, created, err)
		}
		if _, _, err := def.Start(ctx, hf, order{"o2", 500}, run.Key("k")); !errors.Is(err, holdfast.ErrKeyMismatch) {
			t.Errorf("another input under the same key: got %v, want ErrKeyMismatch", err)
		}
	}, def)
}

// Verifies that a command with ExpectVersion applies only at that version.
func TestACommandAtAnExpectedVersion(t *testing.T) {
	def := run.Define("waits", "1", run.Signal("paid", "payment"))
	type command = func(context.Context, holdfast.Doer, string, ...run.CommandOption) (run.Run, error)
	for name, do := range map[string]command{"Cancel": run.Cancel, "Pause": run.Pause, "Resume": run.Resume, "Retry": run.Retry} {
		t.Run(name, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
				r, _, err := def.Start(t.Context(), hf, nil)
				if err != nil {
					t.Fatal(err)
				}
				_, err = do(t.Context(), hf, r.ID, run.ExpectVersion(r.Version+1))
				if f, _ := errors.AsType[*fault.Error](err); f == nil || !errors.Is(err, holdfast.ErrConcurrency) || f.Fields["lastVersion"] != r.Version {
					t.Errorf("at another version: got %v, want ErrConcurrency with lastVersion %d", err, r.Version)
				}
				if now, err := run.Get(t.Context(), hf, r.ID); err != nil || now.Version != r.Version {
					t.Errorf("the refused command left version %d, %v; want %d", now.Version, err, r.Version)
				}
				if _, err := do(t.Context(), hf, r.ID, run.ExpectVersion(r.Version)); errors.Is(err, holdfast.ErrConcurrency) {
					t.Errorf("at the expected version: got %v", err)
				}
			})
		})
	}
}

// Verifies that the topic that Await waits for is woken by the end of a run, however it ends, and by no step before:
// a caller that waits reads the run twice, not at each step.
func TestOnlyTheEndWakesAwait(t *testing.T) {
	def := run.Define("waited", "1", run.Remote("first", "w", run.Idempotent()), run.Remote("second", "w", run.Idempotent()))
	instant := run.Define("instant", "1", run.If("only", "true", "end", "end"))
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		for name, finish := range map[string]func(b *bench){
			"completed": func(b *bench) { b.complete(b.take()) },
			"cancelled": func(b *bench) { b.ok(b.do(runengine.Cancel)) },
			"failed": func(b *bench) {
				_, err := b.executor().Fail(b.ctx, engine.Of(e), b.take(), runengine.Failure{Message: "no", Final: true})
				b.ok(err)
			},
		} {
			b := newBench(t, e, def)
			woken, end := engine.Of(e).Hub().Wait(runengine.EndTopic(b.id))
			b.complete(b.take())
			select {
			case <-woken:
				t.Errorf("%s: the first step woke the callers that wait for the end", name)
			default:
			}
			finish(b)
			select {
			case <-woken:
			default:
				t.Errorf("%s: the end woke nobody", name)
			}
			end()
			if r, err := run.Await(b.ctx, e, b.id); err != nil || !r.Over() {
				t.Errorf("%s: await returned %+v, %v", name, r, err)
			}
		}
		r, _, err := instant.Start(t.Context(), e, nil)
		if err == nil {
			r, err = run.Await(t.Context(), e, r.ID)
		}
		if err != nil || r.Status != run.Completed {
			t.Errorf("a run that ends at once: %+v, %v", r, err)
		}
	}, def, instant)
}

// parts returns definitions as the parts of an engine.
func parts(defs []*run.Definition) (all []holdfast.Part) {
	for _, d := range defs {
		all = append(all, d)
	}
	return all
}
