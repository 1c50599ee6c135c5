// Package tasks keeps work that somebody takes, holds and settles: each task
// once, or again until it succeeds, fails for good, or has killed as many
// workers as it may.
//
// A task is due, and then taken: its hold has an epoch and an end. It ends by
// its holder, who settles it, fails it or releases it, or by the janitor, who
// frees it when the hold has run out. Failures, which a worker lived to report,
// and deaths are counted apart.
package tasks

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// Task is a piece of work as it stands.
type Task struct {
	Queue, ID string
	State     string // due, done, failed, dead
	Version   int64
	Epoch     int64
	Failures  int
	Deaths    int
	Output    []byte
	Error     string
}

// Stream is the name of the stream that holds a task's history.
func Stream(queue, id string) string { return "$task/" + queue + "/" + id }

// Topic is what a worker of a queue is woken by.
func Topic(queue string) string { return "task/" + queue }

// Taken is a task in somebody's hands.
type Taken struct {
	Shard                int16
	Workspace, Queue, ID string
	Input                []byte
	Failures, Deaths     int
	hold.Hold
}

// Attempt counts the tries, this one included.
func (t Taken) Attempt() int { return t.Failures + t.Deaths + 1 }

// AddArgs is a new task, due after a delay.
type AddArgs struct {
	Queue, ID string
	Input     []byte
	Delay     time.Duration
}

// TakeArgs asks for due tasks: those of the context's workspace or, with All, of
// every workspace on a shard.
type TakeArgs struct {
	Queues []string
	Holder string
	Lease  time.Duration
	Limit  int
	All    bool
	Shard  int16
}

type result struct {
	applied bool
	task    Task
}

type endArgs struct {
	queue, id, how string
	epoch          int64
	output         []byte
	message        string
	delay          time.Duration
	retries        int
}

type freeArgs struct {
	expired
	allowed int
}

type expired struct {
	workspace, queue, id string
	epoch                int64
	deaths               int
}

type renewArgs struct {
	queue, id string
	epoch     int64
	lease     time.Duration
}

var (
	addVerb = store.NewVerb(store.Decl{Name: "tasks.add", Group: true, Marks: store.HistoryMarks},
		func(a AddArgs) []string { return []string{key(a.Queue, a.ID)} },
		func(a AddArgs, args *store.Args) {
			args.Text(a.Queue)
			args.Text(a.ID)
			args.Text(string(a.Input))
			args.Int(a.Delay.Milliseconds())
		}, scan).Told(func(AddArgs, store.Mark) result { return result{true, Task{State: "due"}} }).
		Waking(func(a AddArgs) []string { return []string{Topic(a.Queue)} }).
		Emitting(func(a AddArgs) store.Emission { return emits("added", a.Queue, a.ID) })
	getVerb = store.NewVerb(store.Decl{Name: "tasks.get", Lane: store.Read},
		nil, func(a [2]string, args *store.Args) { args.Text(a[0]); args.Text(a[1]) }, scan)
	takeVerb = store.NewVerb(store.Decl{Name: "tasks.take", Lane: store.Work}, nil, bindTake, scanTaken)
	// A renewal goes the short way: behind other work it might come too late.
	renewVerb = store.NewVerb(store.Decl{Name: "tasks.renew", Lane: store.Vital}, nil,
		func(a renewArgs, args *store.Args) {
			args.Text(a.queue)
			args.Text(a.id)
			args.Int(a.epoch)
			args.Int(a.lease.Milliseconds())
		},
		func(until *[]time.Time, row store.Row) error {
			var t time.Time
			err := row.Scan(&t)
			*until = append(*until, t.UTC())
			return err
		})
	endVerb = store.NewVerb(store.Decl{Name: "tasks.end", Group: true, Marks: store.HistoryMarks},
		func(a endArgs) []string { return []string{key(a.queue, a.id)} }, bindEnd, scan).Told(toldEnd).
		Waking(func(a endArgs) []string { return []string{Topic(a.queue)} }).
		Emitting(func(a endArgs) store.Emission { return emits(ended[a.how], a.queue, a.id) })
	expiredVerb = store.NewVerb(store.Decl{Name: "tasks.expired", Lane: store.Read}, nil,
		func(limit int, args *store.Args) { args.Int(int64(limit)) },
		func(all *[]expired, row store.Row) error {
			var e expired
			err := row.Scan(&e.workspace, &e.queue, &e.id, &e.epoch, &e.deaths)
			*all = append(*all, e)
			return err
		})
	freeVerb = store.NewVerb(store.Decl{Name: "tasks.free", Group: true, Marks: store.HistoryMarks},
		func(a freeArgs) []string { return []string{key(a.queue, a.id)} },
		func(a freeArgs, args *store.Args) {
			args.Text(a.queue)
			args.Text(a.id)
			args.Int(a.epoch)
			args.Int(int64(a.allowed))
		}, scan).Told(func(a freeArgs, m store.Mark) result { return result{true, Task{Version: m.Version}} }).
		Waking(func(a freeArgs) []string { return []string{Topic(a.queue)} }).
		Emitting(func(a freeArgs) store.Emission { return emits("died", a.queue, a.id) })
)

// ended names the events by how a hold ends.
var ended = map[string]string{"done": "settled", "fail": "failed", "release": "released"}

func emits(name, queue, id string) store.Emission {
	return store.Emission{Stream: Stream(queue, id), Names: []string{name}}
}

func key(queue, id string) string { return "task/" + queue + "/" + id }

func bindTake(a TakeArgs, args *store.Args) {
	queues := "[]"
	if list, err := json.Marshal(a.Queues); err == nil { // of strings, it does not fail
		queues = string(list)
	}
	args.Text(queues)
	args.Text(a.Holder)
	args.Int(a.Lease.Milliseconds())
	args.Int(int64(a.Limit))
}

func scanTaken(all *[]Taken, row store.Row) error {
	var t Taken
	err := row.Scan(&t.Workspace, &t.Queue, &t.ID, &t.Input, &t.Epoch, &t.Until, &t.Failures, &t.Deaths)
	t.Until = t.Until.UTC()
	*all = append(*all, t)
	return err
}

func bindEnd(a endArgs, args *store.Args) {
	args.Text(a.queue)
	args.Text(a.id)
	args.Text(a.how)
	args.Int(a.epoch)
	args.MaybeText(string(a.output))
	args.MaybeText(a.message)
	args.Int(a.delay.Milliseconds())
	args.Int(int64(a.retries))
}

func scan(r *result, row store.Row) error {
	r.applied = row.Applied()
	t := &r.task
	return row.Scan(&t.State, &t.Version, &t.Epoch, &t.Failures, &t.Deaths, &t.Output, &t.Error)
}

func toldEnd(a endArgs, m store.Mark) result {
	t := Task{Version: m.Version, Epoch: a.epoch, Output: a.output, Error: a.message}
	var data struct {
		State    string
		Failures int
	}
	if json.Unmarshal(m.Data, &data) == nil { // it is ours
		t.State, t.Failures = data.State, data.Failures
	}
	return result{true, t}
}

// Add adds a task. One that exists stays as it is, and created is false.
func Add(ctx context.Context, d store.Doer, a AddArgs) (t Task, created bool, err error) {
	if a.Input == nil {
		a.Input = []byte("{}")
	}
	if err := check(a.Queue, a.ID); err != nil {
		return t, false, err
	}
	if err := strict.Check(a.Input); err != nil {
		return t, false, err
	}
	if err := checkDelay(a.Delay); err != nil {
		return t, false, err
	}
	r, err := addVerb.Do(ctx, d, a)
	return named(r.task, a.Queue, a.ID), r.applied, err
}

// Get returns a task, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, queue, id string) (Task, error) {
	if err := check(queue, id); err != nil {
		return Task{}, err
	}
	r, err := getVerb.Do(ctx, d, [2]string{queue, id})
	if err == nil && !r.applied {
		err = fault.New(fault.NotFound, "there is no task %q in %q", id, queue)
	}
	return named(r.task, queue, id), err
}

// Take takes up to a.Limit due tasks.
func Take(ctx context.Context, d store.Doer, a TakeArgs) ([]Taken, error) {
	if a.Lease == 0 {
		a.Lease = hold.Lease
	}
	if err := checkTake(a); err != nil {
		return nil, err
	}
	at := store.Place{Shard: a.Shard}
	if !a.All {
		var err error
		if at, err = d.Place(ctx, store.Read); err != nil {
			return nil, err
		}
	}
	all, err := takeVerb.DoAt(ctx, d, at, a)
	for i := range all {
		all[i].Shard = at.Shard
	}
	return all, err
}

func checkTake(a TakeArgs) error {
	if len(a.Queues) == 0 || a.Limit < 1 || a.Limit > 1000 {
		return fault.New(fault.Validation, "a take names its queues and takes 1 to 1000 tasks")
	}
	if err := checkLease(a.Lease); err != nil {
		return err
	}
	for _, q := range a.Queues {
		if err := check(q, "any"); err != nil {
			return err
		}
	}
	return strict.Text("holder", a.Holder, events.MaxName)
}

func checkLease(lease time.Duration) error {
	if lease < time.Millisecond || lease > 24*time.Hour {
		return fault.New(fault.Validation, "a lease is a millisecond to a day, not %s", lease)
	}
	return nil
}

// checkDelay refuses a delay that would put a task into the past, or out of
// sight.
func checkDelay(delay time.Duration) error {
	if delay < 0 || delay > 100*365*24*time.Hour {
		return fault.New(fault.Validation, "a delay is nothing to a hundred years, not %s", delay)
	}
	return nil
}

// check refuses names that cannot be told apart later: a stream's name is made
// of them, so a queue's has no slash.
func check(queue, id string) error {
	if strings.Contains(queue, "/") {
		return fault.New(fault.Validation, "a queue's name has no slash: %q", queue)
	}
	if err := strict.Text("queue", queue, events.MaxName); err != nil {
		return err
	}
	return strict.Text("task", id, events.MaxName)
}

func named(t Task, queue, id string) Task {
	t.Queue, t.ID = queue, id
	return t
}
