package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// twoSteps is a workflow of two steps that workers execute.
const twoSteps = `{"name":"two","version":"1","steps":[{"name":"a","type":"task","handler":"Step"},{"name":"b","type":"task","handler":"Step"}]}`

// killing is the number of runs, and the number of kills of the server.
var killing = testlevel.Pick([2]int{8, 2}, [2]int{50, 8}, [2]int{400, 40})

// TestTheServerIsKilledWhileWorkersClaim verifies that all runs complete although the server is
// killed repeatedly while workers claim steps, and responses are lost. No worker crashes, so no
// crash may be counted.
func TestTheServerIsKilledWhileWorkersClaim(t *testing.T) {
	testlevel.OneGoroutine(t) // the servers are processes
	binary := command(t)
	eachDatabase(t, func(t *testing.T, db string) { kills(t, binary, db) })
}

func kills(t *testing.T, binary, db string) {
	r := newRig(t, binary, db, 1, "500ms")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	admin, err := newCaller(r.urls, r.key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := request(ctx, admin, with2(api.PutHandler, "Step", wire.PutHandler{Kind: "worker", Safety: "idempotent"})); err != nil {
		t.Fatal(err)
	}
	if _, err := request(ctx, admin, with1(api.PutDefinition, json.RawMessage(twoSteps))); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range killing[0] {
		key := fmt.Sprint("run-", i)
		got, err := request(ctx, admin, with1(api.StartRun, wire.StartRun{DefinitionID: "two@1", Input: json.RawMessage(`{}`), IdempotencyKey: &key}))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, got.Run.ID)
	}
	working, stop := context.WithCancel(ctx)
	claims := make(chan struct{})
	var workers sync.WaitGroup
	for i := range 4 {
		workers.Go(func() { claimer(working, admin, fmt.Sprint("w", i), i%2 == 0, claims) })
	}
	rnd, lose := testlevel.Rand(t), &r.proxies[0].answers
	for range killing[1] {
		for range 1 + rnd.IntN(6) {
			select {
			case <-claims:
			case <-ctx.Done():
			}
		}
		lose.Store(3) // no worker receives the tasks in these responses
		for lose.Load() > 0 && pause(ctx, 5*time.Millisecond) {
			select {
			case <-claims:
			default:
			}
		}
		r.killed(r.servers[0], 0)
		lose.Store(0)
	}
	go func() {
		for range claims { // drain
		}
	}()
	for _, id := range ids {
		for {
			got, err := request(ctx, admin, with1(api.GetRun, id))
			if err == nil && got.Status == "COMPLETED" {
				break
			}
			if err == nil && got.FinishedAt != nil || !pause(ctx, 20*time.Millisecond) {
				t.Errorf("run %s has status %s: %v, error %v", id, got.Status, got.Error, err)
				break
			}
		}
	}
	stop()
	workers.Wait()
	close(claims)
	r.holdfast("check")
}

// claimer claims and completes steps, and reports each claim on claims. If repeats is true, it
// repeats a claim with the same key after a lost response; otherwise it makes a new claim.
func claimer(ctx context.Context, c *caller, name string, repeats bool, claims chan<- struct{}) {
	wait := wire.Millis(200)
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case claims <- struct{}{}:
		case <-ctx.Done():
			return
		}
		claim := with1(api.ClaimTasks, wire.ClaimTasks{Worker: name, Handlers: []string{"Step"}, Limit: 50, WaitMs: &wait, LeaseMs: wire.Ms(time.Second)})
		var got wire.Tasks
		if repeats {
			got, _ = request(ctx, c, claim, client.Key(fmt.Sprint(name, "/", n)))
		} else {
			short, cancel := context.WithTimeout(ctx, attempt)
			got, _ = claim(short, c.clients[0])
			cancel()
		}
		for _, task := range got.Tasks {
			_, _ = request(ctx, c, with2(api.CompleteTask, task.ID, wire.CompleteTask{Epoch: task.Epoch}))
		}
	}
}
