package storetest

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/tasks"
)

func (e *env) task(id string) {
	e.Helper()
	_, created, err := tasks.Add(e.ctx, e.hf, tasks.AddArgs{Queue: "q", ID: id, Input: []byte(`{"id":"` + id + `"}`)})
	e.ok(err)
	e.equal("created", created, true)
}

func (e *env) take(limit int, lease time.Duration) []tasks.Taken {
	e.Helper()
	got, err := tasks.Take(e.ctx, e.hf, tasks.TakeArgs{Queues: []string{"q"}, Holder: "h", Lease: lease, Limit: limit})
	e.ok(err)
	return got
}

func (e *env) takeOne(lease time.Duration) tasks.Taken {
	e.Helper()
	got := e.take(1, lease)
	if len(got) != 1 {
		e.Fatalf("took %d tasks, want one", len(got))
	}
	return got[0]
}

// runOut takes a task for a moment and waits until the hold has run out, by the
// database's own time.
func (e *env) runOut() tasks.Taken {
	e.Helper()
	got := e.takeOne(time.Millisecond)
	for {
		s, err := e.hf.Status(e.ctx)
		e.ok(err)
		if s.Now.After(got.Until) {
			return got
		}
	}
}

func (e *env) sweep() int {
	e.Helper()
	freed, err := tasks.Sweep(e.ctx, e.hf, 0, 5)
	e.ok(err)
	return freed
}

func (e *env) state(id string) tasks.Task {
	e.Helper()
	got, err := tasks.Get(e.ctx, e.hf, "q", id)
	e.ok(err)
	return got
}

var taskCases = []Case{
	{"task: added once, and due at once", func(e *env) {
		e.task("t")
		_, created, err := tasks.Add(e.ctx, e.hf, tasks.AddArgs{Queue: "q", ID: "t", Input: []byte(`{"other":1}`)})
		e.ok(err)
		e.equal("created again", created, false)
		got := e.takeOne(time.Minute)
		e.equal("taken", words(got.ID, got.Epoch, got.Attempt(), string(got.Input)), `t 1 1 {"id":"t"}`)
		e.equal("history", e.names(tasks.Stream("q", "t")), []string{"added"})
	}},
	{"task: what is held is not taken again", func(e *env) {
		e.task("t")
		e.takeOne(time.Minute)
		e.equal("taken", len(e.take(10, time.Minute)), 0)
	}},
	{"task: the longest due is taken first", func(e *env) {
		for i := range 4 {
			e.task(fmt.Sprint(i))
		}
		for want := range 4 {
			e.equal("taken", e.takeOne(time.Minute).ID, want)
		}
	}},
	{"task: no more are taken than asked for, and none twice", func(e *env) {
		for i := range 5 {
			e.task(fmt.Sprint(i))
		}
		seen := map[string]bool{}
		for _, want := range []int{2, 2, 1, 0} {
			got := e.take(2, time.Minute)
			e.equal("taken", len(got), want)
			for _, t := range got {
				e.equal("taken before", seen[t.ID], false)
				seen[t.ID] = true
			}
		}
	}},
	{"task: one that is not due yet is not taken", func(e *env) {
		_, _, err := tasks.Add(e.ctx, e.hf, tasks.AddArgs{Queue: "q", ID: "t", Delay: time.Hour})
		e.ok(err)
		e.equal("taken", len(e.take(1, time.Minute)), 0)
	}},
	{"task: another queue or workspace takes nothing", func(e *env) {
		e.task("t")
		got, err := tasks.Take(e.ctx, e.hf, tasks.TakeArgs{Queues: []string{"other"}, Holder: "h", Limit: 1})
		e.ok(err)
		e.equal("other queue", len(got), 0)
		got, err = tasks.Take(freshWorkspace(e.ctx), e.hf, tasks.TakeArgs{Queues: []string{"q"}, Holder: "h", Limit: 1})
		e.ok(err)
		e.equal("other workspace", len(got), 0)
	}},
	{"task: settled, it is done, and never taken again", func(e *env) {
		e.task("t")
		t := e.takeOne(time.Minute)
		got, err := tasks.Settle(e.ctx, e.hf, t, []byte(`{"ok":true}`))
		e.ok(err)
		e.equal("settled", words(got.State, got.Version), "done 1")
		e.sameJSON("output", e.state("t").Output, []byte(`{"ok":true}`))
		e.equal("taken", len(e.take(1, time.Minute)), 0)
		e.equal("history", e.names(tasks.Stream("q", "t")), []string{"added", "settled"})
	}},
	{"task: settled again by the same holder, the answer is the same", func(e *env) {
		e.task("t")
		t := e.takeOne(time.Minute)
		for range 3 {
			got, err := tasks.Settle(e.ctx, e.hf, t, []byte(`{"a":1}`))
			e.ok(err)
			e.equal("settled", words(got.State, got.Version, string(got.Output)), `done 1 {"a":1}`)
		}
		_, err := tasks.Settle(e.ctx, e.hf, t, []byte(`{"a":2}`))
		e.refused(err, fault.LeaseLost)
		_, err = tasks.Release(e.ctx, e.hf, t, 0)
		e.refused(err, fault.LeaseLost)
		e.equal("history", e.names(tasks.Stream("q", "t")), []string{"added", "settled"})
	}},
	{"task: released, it is due again under the next epoch", func(e *env) {
		e.task("t")
		first := e.takeOne(time.Minute)
		_, err := tasks.Release(e.ctx, e.hf, first, 0)
		e.ok(err)
		second := e.takeOne(time.Minute)
		e.equal("second", words(second.Epoch, second.Failures, second.Deaths), "2 0 0")
	}},
	{"task: a failure is counted, and waits before it is tried again", func(e *env) {
		e.task("t")
		got, err := tasks.Fail(e.ctx, e.hf, e.takeOne(time.Minute), "no", time.Hour, 3)
		e.ok(err)
		e.equal("failed", words(got.State, got.Failures, got.Deaths, got.Error), "due 1 0 no")
		e.equal("taken", len(e.take(1, time.Minute)), 0)
	}},
	{"task: more failures than retries end it", func(e *env) {
		e.task("t")
		for i := range 3 {
			got, err := tasks.Fail(e.ctx, e.hf, e.takeOne(time.Minute), "no", 0, 2)
			e.ok(err)
			e.equal("failed", words(got.State, got.Failures), words([]string{"due", "due", "failed"}[i], i+1))
		}
		e.equal("taken", len(e.take(1, time.Minute)), 0)
		e.equal("history", e.names(tasks.Stream("q", "t")), []string{"added", "failed", "failed", "failed"})
	}},
	{"task: renewed, a hold lasts longer, and keeps its epoch", func(e *env) {
		e.task("t")
		t := e.takeOne(time.Minute)
		until, err := tasks.Renew(e.ctx, e.hf, t, time.Hour)
		e.ok(err)
		e.equal("later", until.Sub(t.Until) > 50*time.Minute, true)
		_, err = tasks.Settle(e.ctx, e.hf, t, nil)
		e.ok(err)
	}},
	{"task: a hold that ran out can neither write, renew nor release, though nobody else has it", func(e *env) {
		e.task("t")
		t := e.runOut()
		_, err := tasks.Settle(e.ctx, e.hf, t, nil)
		e.refused(err, fault.LeaseLost)
		_, err = tasks.Fail(e.ctx, e.hf, t, "x", 0, 3)
		e.refused(err, fault.LeaseLost)
		_, err = tasks.Release(e.ctx, e.hf, t, 0)
		e.refused(err, fault.LeaseLost)
		_, err = tasks.Renew(e.ctx, e.hf, t, time.Minute)
		e.refused(err, fault.LeaseLost)
		for _, name := range e.names(tasks.Stream("q", "t")) { // another case's janitor may free it
			e.equal("history", name == "added" || name == "died", true)
		}
	}},
	{"task: an old epoch can do nothing to the new holder", func(e *env) {
		e.task("t")
		old := e.takeOne(time.Minute)
		_, err := tasks.Release(e.ctx, e.hf, old, 0)
		e.ok(err)
		now := e.takeOne(time.Minute)
		_, err = tasks.Settle(e.ctx, e.hf, old, []byte(`"old"`))
		e.refused(err, fault.LeaseLost)
		_, err = tasks.Renew(e.ctx, e.hf, old, time.Hour)
		e.refused(err, fault.LeaseLost)
		_, err = tasks.Settle(e.ctx, e.hf, now, []byte(`"new"`))
		e.ok(err)
		e.equal("output", string(e.state("t").Output), `"new"`)
	}},
	{"task: the janitor frees a hold that ran out, once, and counts the death", func(e *env) {
		e.task("t")
		e.runOut()
		holdfasttest.Race(e.T, 4, func(int) error { e.sweep(); return nil })
		got := e.state("t")
		e.equal("freed", words(got.State, got.Deaths, got.Failures), "due 1 0")
		e.equal("history", e.names(tasks.Stream("q", "t")), []string{"added", "died"})
		again := e.takeOne(time.Minute)
		e.equal("again", words(again.Epoch, again.Attempt()), "2 2")
		e.equal("a live hold is left alone", words(e.sweep() >= 0, e.state("t").Deaths), "true 1")
	}},
	{"task: what kills its worker each time is given up", func(e *env) {
		e.task("t")
		for range 5 {
			e.runOut()
			e.sweep()
		}
		got := e.state("t")
		e.equal("given up", words(got.State, got.Deaths, got.Failures), "dead 5 0")
		e.equal("taken", len(e.take(1, time.Minute)), 0)
	}},
	{"task: what cannot be kept is refused", func(e *env) {
		for _, id := range []string{"", "a\x00"} {
			_, _, err := tasks.Add(e.ctx, e.hf, tasks.AddArgs{Queue: "q", ID: id})
			e.refused(err, fault.Validation)
		}
		for _, a := range []tasks.AddArgs{{Queue: "a/b", ID: "c"}, {Queue: "q", ID: "t", Delay: -1}} {
			_, _, err := tasks.Add(e.ctx, e.hf, a)
			e.refused(err, fault.Validation)
		}
		for _, lease := range []time.Duration{-time.Hour, time.Microsecond, 1 << 62} {
			_, err := tasks.Take(e.ctx, e.hf, tasks.TakeArgs{Queues: []string{"q"}, Holder: "h", Limit: 1, Lease: lease})
			e.refused(err, fault.Validation)
		}
		_, err := tasks.Take(e.ctx, e.hf, tasks.TakeArgs{Queues: []string{"a\x00"}, Holder: "h", Limit: 1})
		e.refused(err, fault.Validation)
		e.task("held")
		_, err = tasks.Renew(e.ctx, e.hf, e.takeOne(time.Minute), -time.Hour)
		e.refused(err, fault.Validation)
		_, _, err = tasks.Add(e.ctx, e.hf, tasks.AddArgs{Queue: "q", ID: "t", Input: []byte(`{`)})
		e.refused(err, fault.Validation)
		for _, limit := range []int{0, 1001} {
			_, err = tasks.Take(e.ctx, e.hf, tasks.TakeArgs{Queues: []string{"q"}, Holder: "h", Limit: limit})
			e.refused(err, fault.Validation)
		}
	}},
	{"task: 16 racers for one hold, one takes it, each time", func(e *env) {
		for round := range 10 {
			id := fmt.Sprint(round)
			e.task(id)
			won, _ := holdfasttest.Race(e.T, 16, func(int) error {
				got, err := tasks.Take(e.ctx, e.hf, tasks.TakeArgs{Queues: []string{"q"}, Holder: "h", Lease: time.Minute, Limit: 1})
				if err == nil && len(got) == 0 {
					return holdfast.ErrNotFound
				}
				return err
			})
			e.equal("won", won, 1)
		}
	}},
}
