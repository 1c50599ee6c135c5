package storetest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

// TestStepsRecordedTogetherAreRecordedAsEachByItself verifies that a record of several steps leaves the rows, the versions
// and the events that a record of each leaves, and returns the same run.
func TestStepsRecordedTogetherAreRecordedAsEachByItself(t *testing.T) {
	for _, name := range []string{"sqlite", "postgres"} {
		for _, general := range []bool{false, true} {
			form := "fast"
			if general {
				form = "general"
			}
			t.Run(name+"/"+form, func(t *testing.T) {
				t.Parallel()
				each, together := recordLines(playScene(t, name, general, togetherScene(false, false))), recordLines(playScene(t, name, general, togetherScene(true, false)))
				if len(each) < 60 {
					t.Fatalf("too few lines to compare: %q", each)
				}
				for i := range max(len(each), len(together)) {
					if got, want := lineAt(together, i), lineAt(each, i); got != want {
						t.Fatalf("together:\n  %s\neach by itself:\n  %s", got, want)
					}
				}
			})
		}
	}
}

var recordNumber = regexp.MustCompile(`^(holdfast.history.*?) n=\d+`)

// recordLines removes what differs between records of one and of several steps: the numbers of the events in a record.
func recordLines(lines []string) (all []string) {
	for _, line := range lines {
		all = append(all, recordNumber.ReplaceAllString(line, "$1"))
	}
	slices.Sort(all)
	return all
}

// togetherScene ends several steps of runs, together or each by itself, and then those whose record is refused.
func togetherScene(together, refusals bool) scene {
	return func(t *testing.T, p play) (results []string, _ string) {
		exec, e, ctx := &runengine.Executor{Retention: time.Hour}, engine.Of(p.hf), t.Context()
		task := func(name string) workflow.Step {
			return workflow.Step{Name: name, Type: workflow.Task, Handler: "h-" + name, Safety: "idempotent"}
		}
		define := func(d *workflow.Definition) string {
			d.Version = "1"
			if _, err := runengine.Define(ctx, e, d); err != nil {
				t.Fatal(err)
			}
			return d.ID()
		}
		five := define(&workflow.Definition{Name: "five", Steps: []workflow.Step{task("a"), task("b"), task("c"), task("d"), task("e")}})
		loop := task("b")
		loop.Next, loop.Input = "a", []byte(`{"was":"=steps.a.output","n":"=state.n"}`)
		rounds := define(&workflow.Definition{Name: "rounds", Steps: []workflow.Step{task("a"), loop, task("c")}})
		here := func(string) (runengine.Handled, bool) {
			return runengine.Handled{Safety: "idempotent", Timeout: time.Minute}, true
		}
		notE := func(handler string) (runengine.Handled, bool) {
			h, _ := here(handler)
			return h, handler != "h-e"
		}
		start := func(def, input string) runengine.ClaimedStep {
			l, _, err := exec.Start(ctx, e, runengine.Start{Definition: def, Input: []byte(input), Holder: "me", Lease: time.Minute, Local: here})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		ended := func(local runengine.LocalHandlers, outputs ...string) (all []runengine.Ended) {
			for _, o := range outputs {
				output, patch, _ := strings.Cut(o, " ")
				all = append(all, runengine.Ended{Output: []byte(output), Patches: [][]byte{[]byte(patch)}, Holder: "me", Lease: 30 * time.Second, Local: local})
			}
			return all
		}
		end := func(l runengine.ClaimedStep, all []runengine.Ended) runengine.ClaimedStep {
			next, recorded, err := l, true, error(nil)
			if together {
				next, recorded, err = exec.CompleteAll(ctx, e, &l, all)
			} else {
				for i := 0; i < len(all) && err == nil; i++ {
					next, err = exec.Complete(ctx, e, &next, all[i])
				}
			}
			if err != nil || !recorded {
				t.Fatal(recorded, err)
			}
			note := next
			note.Run.ID, note.Step.Holder = "", ""
			note.Run.CreatedAt, note.Run.StartedAt, note.Run.FinishedAt, note.Run.UpdatedAt, note.Step.Until = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
			results = append(results, formatResult(map[string]any{"run": note.Run, "step": note.Step, "taken": next.Taken(), "held": next.Taken() && next.Step.Until.Unix() > 0}, nil))
			return next
		}

		end(start(five, `{"to":"the end"}`), ended(here, `1`, `{"x":"<&>\u00e4ß"}`, `null`, `[1,2]`, `"over"`))
		l := end(start(five, `{"in":"two records"}`), ended(here, `1 {"s":1}`, `2`))
		end(l, ended(here, `3`, `4 {"t":{"u":2}}`, `5 {"s":null}`))
		end(start(five, `{"to":"another node"}`), ended(notE, `1 {"s":1}`, `2`, `3 {"s":2}`, `4`))
		end(start(five, `{}`), ended(here, `1`, `"`+strings.Repeat(`7`, 20_000)+`"`))
		l = end(start(rounds, `{"r":1}`), ended(here, `"a1" {"n":1}`, `1`, `"a2" {"n":2}`, `2`, `"a3"`))
		end(l, ended(here, `3`, `4`))

		if !refusals {
			return results, ""
		}
		// A lease that expired, an epoch that is gone, a run that moved: nothing of it is recorded.
		refused := func(l runengine.ClaimedStep) {
			before, err := runengine.Load(ctx, e, l.Run.ID)
			if err != nil {
				t.Fatal(err)
			}
			_, recorded, err := exec.CompleteAll(ctx, e, &l, ended(here, `1`, `2`, `3`, `4`, `5`))
			after, failed := runengine.Load(ctx, e, l.Run.ID)
			steps, _ := runengine.Steps(ctx, e, l.Run.ID, 0, 10)
			if recorded || err != nil || failed != nil || after.Run.Version != before.Run.Version || len(steps) != 1 {
				t.Fatalf("recorded %v, %v; the run went from version %d to %d, with %d steps", recorded, err, before.Run.Version, after.Run.Version, len(steps))
			}
			results = append(results, "refused "+after.Run.Status)
		}
		l = start(five, `{"refused":1}`)
		p.change(t, "UPDATE {step} SET until = created_at WHERE run = '"+l.Run.ID+"'")
		refused(l)
		l = start(five, `{"refused":2}`)
		p.change(t, "UPDATE {step} SET epoch = 7 WHERE run = '"+l.Run.ID+"'")
		refused(l)
		for _, command := range []string{"pause", "cancel"} {
			l = start(five, `{"refused":3}`)
			if _, err := exec.Command(ctx, e, l.Run.ID, runengine.Command{Name: command}); err != nil {
				t.Fatal(err)
			}
			refused(l)
		}
		p.declared(t) // a registry that changed: the record is made again
		end(start(five, `{"refused":"not"}`), ended(here, `1`, `2`, `3`))
		p.change(t, "UPDATE {registry} SET revision = 200")
		end(start(five, `{"refused":"not"}`), ended(here, `1`, `2`, `3`))
		return results, ""
	}
}
