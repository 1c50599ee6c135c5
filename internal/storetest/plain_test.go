package storetest

import (
	"cmp"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

// TestPlainMovesDoWhatPlansDo verifies that the verbs with plain arguments and plans have the same results, and leave
// the same rows, when a run starts and when a step ends.
func TestPlainMovesDoWhatPlansDo(t *testing.T) {
	for _, name := range []string{"sqlite", "postgres"} {
		for _, general := range []bool{false, true} {
			form := "fast"
			if general {
				form = "general"
			}
			t.Run(name+"/"+form, func(t *testing.T) {
				t.Parallel()
				plans, plain := playScene(t, name, general, plainScene(true)), playScene(t, name, general, plainScene(false))
				for i := range max(len(plans), len(plain)) {
					if got, want := lineAt(plain, i), lineAt(plans, i); got != want {
						t.Fatalf("with plain arguments:\n  %s\nwith plans:\n  %s", got, want)
					}
				}
			})
		}
	}
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// plainScene starts and moves runs with every kind of start and end, including those that require a plan.
func plainScene(plansOnly bool) scene {
	return func(t *testing.T, p play) (results []string, _ string) {
		exec, e, ctx := &runengine.Executor{PlansOnly: plansOnly, Retention: time.Hour}, engine.Of(p.hf), t.Context()
		local := func(safety string) runengine.LocalHandlers {
			return func(string) (runengine.Handled, bool) {
				return runengine.Handled{Safety: safety, Timeout: time.Minute}, safety != ""
			}
		}
		task := func(name, safety string) workflow.Step {
			return workflow.Step{Name: name, Type: workflow.Task, Handler: "h-" + name, Safety: safety}
		}
		define := func(name string, steps ...workflow.Step) string {
			d := &workflow.Definition{Name: name, Version: "1", Steps: steps}
			if _, err := runengine.Define(ctx, e, d); err != nil {
				t.Fatal(err)
			}
			return d.ID()
		}
		three := define("three", task("a", "idempotent"), task("b", "idempotent"), task("c", "idempotent"))
		opaque := define("opaque", task("a", "opaque"), task("b", "opaque"))
		both := define("both", task("a", "opaque"), task("b", "idempotent"), task("c", "opaque"))
		mixed := define("mixed", task("a", "idempotent"), workflow.Step{Name: "if", Type: workflow.Condition, If: "state.n > 1", Then: "b", Else: "w"},
			task("b", "idempotent"), workflow.Step{Name: "w", Type: workflow.Wait, Duration: time.Hour}, task("c", "idempotent"))
		note := func(l runengine.ClaimedStep, more any, err error) {
			l.Run.ID, l.Step.Holder = "", ""
			l.Run.CreatedAt, l.Run.StartedAt, l.Run.FinishedAt, l.Run.UpdatedAt, l.Step.StartedAt, l.Step.FinishedAt, l.Step.Due = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
			held := !l.Step.Until.IsZero() && l.Step.Until.Unix() != 0
			l.Step.Until = time.Time{}
			results = append(results, formatResult(map[string]any{"run": l.Run, "step": l.Step, "held": held, "taken": l.Taken(), "more": more}, err))
		}
		start := func(def, key, input string, of runengine.LocalHandlers) runengine.ClaimedStep {
			l, created, err := exec.Start(ctx, e, runengine.Start{Definition: def, Input: []byte(input), Key: key, Holder: "me", Lease: time.Minute, Local: of})
			note(l, created, err)
			return l
		}
		end := func(l runengine.ClaimedStep, output, patch string, of runengine.LocalHandlers) runengine.ClaimedStep {
			next, err := exec.Complete(ctx, e, &l, runengine.Ended{Output: []byte(output), Patches: [][]byte{[]byte(patch)}, Holder: "me", Lease: 30 * time.Second, Local: of})
			note(next, nil, err)
			return next
		}
		command := func(l runengine.ClaimedStep, name string) {
			_, err := exec.Command(ctx, e, l.Run.ID, runengine.Command{Name: name})
			results = append(results, name+" "+string(fault.CodeOf(err)))
		}
		here, nowhere := local("idempotent"), runengine.LocalHandlers(nil)

		// to the end, and each end again
		a := start(three, "k1", `{"n":1}`, here)
		start(three, "k1", `{"n":1}`, here)
		start(three, "k1", `{"n":2}`, here)
		start(mixed, "k1", `{"n":1}`, here)
		b := end(a, `{"x":1}`, "", here)
		end(a, `{"x":1}`, "", here)
		end(a, `{"x":2}`, "", here)
		c := end(b, `null`, `{"s":"t"}`, here)
		end(c, `"over"`, "", here)
		end(c, `"over"`, "", here)
		// by others
		a = start(three, "", `{}`, nowhere)
		end(a, `1`, "", nowhere)
		a, err := runengine.Load(ctx, e, a.Run.ID)
		note(a, nil, err)
		taken, ok, err := exec.Take(ctx, e, &a, runengine.Handled{Safety: "idempotent", Timeout: time.Minute}, runengine.Taker{Holder: "you", Lease: time.Minute, Elsewhere: true})
		note(taken, ok, err)
		b = end(taken, `1`, "", nowhere)
		end(b, `1`, "", nowhere)
		// what plans are for
		for n := range 3 {
			a = start(mixed, "", `{}`, here)
			end(a, `[1]`, `{"n":`+string(rune('0'+n))+`}`, here)
		}
		// opaque steps
		a = start(opaque, "k3", `{}`, local("opaque"))
		start(opaque, "k3", `{}`, local("opaque"))
		b = end(a, `1`, "", local("opaque"))
		end(a, `1`, "", local("opaque"))
		end(b, `{"x":2}`, `{"y":3}`, local(""))
		start(opaque, "", `{}`, local(""))
		a = start(both, "", `{}`, local("opaque"))
		b = end(a, `null`, "", here)
		end(b, `2`, "", local("opaque"))
		a = start(opaque, "", `{}`, local("opaque"))
		p.change(t, "UPDATE {step} SET until = created_at WHERE run = '"+a.Run.ID+"'")
		end(a, `1`, "", here)
		for _, name := range []string{"pause", "cancel"} {
			a = start(three, "", `{}`, here)
			command(a, name)
			end(a, `1`, "", here)
			command(a, cmp.Or(map[string]string{"pause": "resume"}[name], "cancel"))
		}
		// a lease that expired, an epoch that is gone, a run that moved, a registry that changed
		a = start(three, "", `{}`, here)
		p.change(t, "UPDATE {step} SET until = created_at WHERE run = '"+a.Run.ID+"'")
		end(a, `1`, "", here)
		a = start(three, "", `{}`, here)
		p.change(t, "UPDATE {step} SET epoch = 7 WHERE run = '"+a.Run.ID+"'")
		end(a, `1`, "", here)
		a = start(three, "", `{}`, here)
		command(a, "pause")
		command(a, "resume")
		end(a, `1`, "", here)
		p.declared(t)
		a = start(three, "k2", `{}`, here)
		p.change(t, "UPDATE {registry} SET revision = 200")
		end(a, `1`, "", here)
		return results, ""
	}
}
