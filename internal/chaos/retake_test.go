package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// each is the number of streams, steps and items that a worker leases, and shortLease their lease.
// longWait is how long a claim waits for tasks: a task that is not handed to a waiting claim when
// the lease expires is handed out later than that.
const (
	each       = 60
	shortLease = time.Second
	longWait   = 20 * time.Second
)

// quickHandlers are the handlers of streams, steps and items.
var quickHandlers = []string{"Stream", "Step", "Item"}

// workQuickly is a worker that claims all tasks. With spec.Holds it only renews them until it is
// killed. Otherwise it completes them, streams last, and crashes on an event named poison.
func workQuickly(ctx context.Context, spec workerSpec) error {
	c, err := client.New(spec.Servers[0], client.Options{APIKey: spec.Key})
	if err != nil {
		return err
	}
	wait := wire.Ms(longWait)
	for held := 0; ; {
		got, err := c.ClaimTasks(ctx, wire.ClaimTasks{Worker: spec.Name, Handlers: quickHandlers, Limit: 1000, WaitMs: &wait, LeaseMs: wire.Ms(shortLease)})
		if err != nil {
			return err
		}
		several(got.Tasks, func(t wire.Task) { // confirms that the tasks have arrived
			_, _ = c.RenewTask(ctx, t.ID, wire.Renew{Epoch: t.Epoch, LeaseMs: wire.Ms(shortLease)})
		})
		if spec.Holds {
			held += len(got.Tasks)
			for _, t := range got.Tasks {
				go renewForever(ctx, c, t)
			}
			if held == 3*each {
				fmt.Println("all in hand")
			}
			continue
		}
		isEvent := func(t wire.Task) bool { return t.Kind == "reaction" }
		doAll(ctx, c, slices.DeleteFunc(slices.Clone(got.Tasks), isEvent))
		doAll(ctx, c, slices.DeleteFunc(got.Tasks, func(t wire.Task) bool { return !isEvent(t) }))
	}
}

func renewForever(ctx context.Context, c *client.Client, t wire.Task) {
	for pause(ctx, shortLease/3) {
		_, _ = c.RenewTask(ctx, t.ID, wire.Renew{Epoch: t.Epoch, LeaseMs: wire.Ms(shortLease)})
	}
}

func doAll(ctx context.Context, c *client.Client, tasks []wire.Task) {
	several(tasks, func(t wire.Task) {
		if t.Context.Event != nil && t.Context.Event.Name == "poison" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		_, _ = c.CompleteTask(ctx, t.ID, wire.CompleteTask{Epoch: t.Epoch, Output: json.RawMessage(`{}`)}) // on an error the task is claimed again
	})
}

// several calls do for each task, eight at a time.
func several(tasks []wire.Task, do func(wire.Task)) {
	work := make(chan wire.Task)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for t := range work {
				do(t)
			}
		})
	}
	for _, t := range tasks {
		work <- t
	}
	close(work)
	all.Wait()
}

// bench is one round of the test, with its own reaction, batch and workflow.
type bench struct {
	t     *testing.T
	c     *client.Client
	round string
}

func (b *bench) must(_ any, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// setup creates the tasks of the round.
func (b *bench) setup(poison int) {
	b.t.Helper()
	ctx, two := b.t.Context(), 2
	b.must(b.c.PutReaction(ctx, "r-"+b.round, wire.PutReaction{Events: []string{"*"}, Streams: "^" + b.round + "-", Handler: "Stream", MaxDeaths: &two}))
	b.must(b.c.PutDefinition(ctx, json.RawMessage(fmt.Sprintf(`{"name": %q, "version": "1", "steps": [{"name": "do", "type": "task", "handler": "Step"}]}`, b.round))))
	items := make([]wire.NewItem, each)
	for i := range each {
		items[i] = wire.NewItem{Key: fmt.Sprint("i-", i), Cost: new(int64(0))}
		name := "event"
		if i == poison {
			name = "poison"
		}
		b.must(b.c.AppendEvents(ctx, fmt.Sprintf("%s-%d", b.round, i), wire.Append{Events: []wire.NewEvent{{Name: name}}}))
		b.must(b.c.StartRun(ctx, wire.StartRun{DefinitionID: b.round + "@1", Input: json.RawMessage(`{}`)}))
	}
	b.must(b.c.CreateBatch(ctx, wire.NewBatch{ID: new(b.round), Wallet: "w", Handler: "Item", Parallel: each, Items: items}))
}

// left returns the tasks that are not done, the blocked streams, and the failed tasks.
func (b *bench) left() (left, blocked, failed []string) {
	b.t.Helper()
	ctx := b.t.Context()
	streams := 0
	for p, err := range b.c.ListPositions(ctx, "r-"+b.round, client.PositionFilter{}) {
		b.must(nil, err)
		switch streams++; {
		case p.Blocked:
			blocked = append(blocked, p.Stream)
		case p.Watermark < p.Head:
			left = append(left, p.Stream)
		case p.Deaths > 0:
			failed = append(failed, p.Stream+" has a counted crash")
		}
	}
	if streams < each {
		left = append(left, "streams")
	}
	for r, err := range b.c.ListRuns(ctx, client.RunFilter{}) {
		b.must(nil, err)
		switch {
		case !strings.HasPrefix(r.DefinitionID, b.round+"@"):
		case r.Status == "FAILED":
			failed = append(failed, "run "+r.ID)
		case r.Status != "COMPLETED":
			left = append(left, "run "+r.ID)
		}
	}
	batch, err := b.c.GetBatch(ctx, b.round)
	b.must(nil, err)
	if batch.Status != "COMPLETED" {
		left = append(left, "batch")
	}
	if batch.Counts.Failed > 0 {
		failed = append(failed, "items")
	}
	return left, blocked, failed
}

// done waits until all tasks are done. It returns the time that took and the blocked streams.
func (b *bench) done(since time.Time) (took time.Duration, blocked []string) {
	b.t.Helper()
	for {
		left, blocked, failed := b.left()
		if len(left) == 0 || time.Since(since) > 2*time.Minute {
			if len(left)+len(failed) > 0 {
				b.t.Fatalf("%s: unfinished: %q, failed: %q, blocked: %q", b.round, left, failed, blocked)
			}
			return time.Since(since), blocked
		}
		pause(b.t.Context(), 20*time.Millisecond)
	}
}

// TestAKilledWorkersWorkIsDoneByTheOther verifies that, after one of two workers is killed with
// leases of a second on 60 streams, 60 steps and 60 items, the other worker completes them through
// the claims that wait when the leases expire, without the janitor and without a later claim. If
// one event kills every worker, and workers are restarted, only its stream is blocked and all
// other tasks are done.
func TestAKilledWorkersWorkIsDoneByTheOther(t *testing.T) {
	testlevel.Long(t)
	binary := command(t)
	eachDatabase(t, func(t *testing.T, db string) { retake(t, newRig(t, binary, db, 1, "1h")) })
}

func retake(t *testing.T, r *rig) {
	c, err := client.New(r.urls[0], client.Options{APIKey: r.key})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, c: c}
	for _, name := range quickHandlers {
		b.must(c.PutHandler(t.Context(), name, wire.PutHandler{Kind: "worker", Safety: "idempotent"}))
	}
	b.must(c.PutWallet(t.Context(), "w", wire.PutWallet{}))
	key := r.workerKey()
	worker := func(name string, begin func(workerSpec) (*exec.Cmd, error)) *process {
		p := &process{name: name, begin: func(*process) (*exec.Cmd, error) {
			return begin(workerSpec{Name: name, Servers: r.urls, Key: key, Quick: true})
		}}
		r.workers = append(r.workers, p)
		return p
	}
	start := func(p *process) {
		t.Helper()
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
	}

	b.round = "undisturbed"
	b.setup(-1)
	begun, other := time.Now(), worker("other", r.work)
	start(other)
	undisturbed, _ := b.done(begun)
	other.kill()

	b.round = "killed"
	b.setup(-1)
	holder := worker("holder", func(s workerSpec) (*exec.Cmd, error) { s.Holds = true; return r.workUntil(s, "all in hand") })
	start(holder)
	start(other)
	begun = time.Now()
	holder.kill()
	took, blocked := b.done(begun)
	if took >= longWait || len(blocked) > 0 {
		t.Errorf("after the kill: took %s (undisturbed %s), want less than the wait of a claim; blocked: %q", took, undisturbed, blocked)
	}
	other.kill()

	b.round = "poison"
	b.setup(17)
	var alive sync.WaitGroup
	poisoned, enough := context.WithCancel(t.Context())
	for _, p := range []*process{worker("one", r.work), worker("two", r.work)} {
		start(p)
		alive.Go(func() {
			for poisoned.Err() == nil {
				_ = p.cmd.Wait() // it crashes on the event, or is killed below
				if poisoned.Err() == nil {
					_ = p.start()
				}
			}
		})
	}
	found, blocked := b.done(time.Now())
	if !slices.Equal(blocked, []string{"poison-17"}) {
		t.Errorf("blocked streams are %q, want poison-17", blocked)
	}
	enough()
	starts := 0
	for _, p := range r.workers[2:] {
		_ = p.cmd.Process.Kill()
		starts += p.starts
	}
	alive.Wait()
	t.Logf("undisturbed %s, after the kill %s, with the poison event %s and %d worker starts", undisturbed, took, found, starts)
	r.holdfast("check")
}
