package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// raceCallers is the number of callers of a round, half of them on each server.
const raceCallers = 8

const raceConfig = `{"workflow":"bill","owning_module":"billing","initial_status":"open","status_types":["open","closing","closed"],"janitor":{"stuck_after":"1s"},"steps":[
	{"step_id":1,"step_key":"close","status":"open","successful_claim_state":{"admin":["closing","open"]},"successful_state":{"admin":"closed"},"action":{"admin":"Close"}}]}`

// TestRacesAreWhatCallersCounted verifies with two servers and eight callers, each with its own API key, that the races and the
// timeline of each entity show one winner and every loser, with its actor, request, code and order, as the callers
// counted them. A holder that settles after its lease has ended, and a server that is stopped (SIGSTOP) past the end of
// the lease that it holds, are among the losers.
func TestRacesAreWhatCallersCounted(t *testing.T) {
	testlevel.OneGoroutine(t) // the servers are processes
	binary := command(t)
	eachDatabase(t, func(t *testing.T, db string) {
		r := newRig(t, binary, db, 2, "100ms", "--allow-private", "127.0.0.0/8", "--secret-key", strings.Repeat("ab", 32))
		c := &contest{rig: r, told: make(map[string]map[string]string)}
		c.run(t.Context(), testlevel.Pick(4, 15, 50))
	})
}

// contest is the test on one database.
type contest struct {
	*rig
	admin   *client.Client
	callers []*contestant
	held    atomic.Pointer[heldCall] // the next call of the action waits

	mu   sync.Mutex
	told map[string]map[string]string // by entity and by actor and request: the code, "" for the winner
}

// heldCall is a call of the action that waits.
type heldCall struct{ reached, free chan struct{} }

// contestant is a caller with an API key of its own.
type contestant struct {
	*client.Client
	actor   string
	request string // the id of the next request
}

// RoundTrip sends a request with its id.
func (c *contestant) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Request-Id", c.request)
	return http.DefaultTransport.RoundTrip(r)
}

func (c *contest) contestant(i int, key string) *contestant {
	x := &contestant{actor: "key:" + strings.Split(key, "_")[1]}
	var err error
	if x.Client, err = client.New(c.urls[i%len(c.urls)], client.Options{APIKey: key, MaxAttempts: 1, HTTP: &http.Client{Transport: x}}); err != nil {
		c.t.Fatal(err)
	}
	return x
}

// note records what a caller was told.
func (c *contest) note(x *contestant, id string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told[id] == nil {
		c.told[id] = make(map[string]string)
	}
	c.told[id][x.actor+" "+x.request] = string(fault.CodeOf(err))
}

func (c *contest) must(_ any, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *contest) run(ctx context.Context, rounds int) {
	action := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if held := c.held.Swap(nil); held != nil {
			close(held.reached)
			<-held.free
		}
		_, _ = w.Write([]byte(`{}`))
	}))
	defer action.Close()
	for i := range raceCallers {
		c.callers = append(c.callers, c.contestant(i, c.holdfast("keys", "create", "--role", "operate", "--requester", "admin")))
	}
	admin := c.contestant(0, c.key)
	c.admin = admin.Client
	c.must(c.admin.PutHandler(ctx, "Close", wire.PutHandler{Kind: "http", URL: action.URL, Safety: "idempotent"}))
	c.must(c.admin.PutLifecycle(ctx, "bill", json.RawMessage(raceConfig)))
	for round := range rounds {
		id := fmt.Sprint("bill-", round)
		c.must(c.admin.CreateEntity(ctx, "bill", wire.NewEntity{ID: &id}))
		var all sync.WaitGroup
		for i, x := range c.callers {
			x.request = fmt.Sprintf("%s.%d", id, i)
			all.Go(func() {
				_, err := x.FireStep(ctx, "bill", id, "close", wire.Fire{Requester: "admin"})
				c.note(x, id, err)
			})
		}
		all.Wait()
	}
	c.late(ctx)
	c.stopped(ctx)
	c.check(ctx)
	c.look()
}

// late lets a holder settle after its lease has ended and another caller has closed the bill.
func (c *contest) late(ctx context.Context) {
	id := "late"
	c.must(c.admin.CreateEntity(ctx, "bill", wire.NewEntity{ID: &id}))
	first, second := c.callers[0], c.callers[1]
	claimed, err := first.ClaimStep(ctx, "bill", id, wire.NewClaim{StepKey: "close", Requester: "admin", LeaseMs: 300})
	c.must(claimed, err)
	c.closes(ctx, second, id)
	first.request = "late"
	_, err = first.SettleClaim(ctx, claimed.Claim.Token, wire.Settle{})
	c.lost(first, id, err)
}

// stopped stops the server that holds a claim while the action runs, until another caller has closed the bill through
// the other server.
func (c *contest) stopped(ctx context.Context) {
	id := "stopped"
	c.must(c.admin.CreateEntity(ctx, "bill", wire.NewEntity{ID: &id}))
	second, first := c.callers[0], c.callers[1]
	held := &heldCall{reached: make(chan struct{}), free: make(chan struct{})}
	c.held.Store(held)
	first.request = "stopped"
	answer := make(chan error, 1)
	go func() {
		_, err := first.FireStep(ctx, "bill", id, "close", wire.Fire{Requester: "admin"})
		answer <- err
	}()
	<-held.reached
	goesOn := sync.OnceFunc(func() {
		close(held.free)
		c.servers[1].signal(syscall.SIGCONT)
	})
	defer goesOn()
	c.servers[1].signal(syscall.SIGSTOP)
	c.closes(ctx, second, id)
	goesOn()
	c.lost(first, id, <-answer)
}

// closes lets a caller try to close a bill until its holder has lost the lease.
func (c *contest) closes(ctx context.Context, x *contestant, id string) {
	for {
		x.request = fmt.Sprint("second.", time.Now().UnixNano())
		_, err := x.FireStep(ctx, "bill", id, "close", wire.Fire{Requester: "admin"})
		c.note(x, id, err)
		if err == nil {
			return
		}
		if fault.CodeOf(err) != fault.ClaimFailed { // the holder has its lease yet
			c.t.Fatal(err)
		}
		if !pause(ctx, 50*time.Millisecond) {
			c.t.Fatal("the lease does not end")
		}
	}
}

// lost records that a late holder was refused.
func (c *contest) lost(x *contestant, id string, err error) {
	if fault.CodeOf(err) != fault.LeaseLost {
		c.t.Errorf("the late holder of %s got %v, want %s", id, err, fault.LeaseLost)
	}
	c.note(x, id, err)
}

// check compares races and timelines with what the callers were told. Each server records its own refusals, a moment
// later; a read of the timeline through it writes them at once.
func (c *contest) check(ctx context.Context) {
	for _, u := range c.urls {
		x, err := client.New(u, client.Options{APIKey: c.key})
		c.must(x, err)
		c.must(x.ListRacesPage(ctx, client.Page{}))
	}
	races := make(map[string]map[string]string)
	for race, err := range c.admin.ListRaces(ctx) {
		c.must(race, err)
		id := strings.TrimPrefix(race.Stream, "$entity/bill/")
		for _, x := range race.Refusals {
			if races[id] == nil {
				races[id] = make(map[string]string)
			}
			races[id][x.Actor+" "+x.RequestID] = string(x.Code)
		}
		if race.Winner == nil {
			c.t.Errorf("the race on %s has no winner", id)
		}
	}
	for id, told := range c.told {
		winner, lost := "", make(map[string]string)
		for who, code := range told {
			if code != "" {
				lost[who] = code
				continue
			}
			if winner != "" {
				c.t.Fatalf("%s: both %s and %s won", id, winner, who)
			}
			winner, _, _ = strings.Cut(who, " ")
		}
		if got := fmt.Sprint(races[id]); winner == "" || got != fmt.Sprint(lost) {
			c.t.Errorf("%s: the races show %s, but the callers counted %v, and %q won", id, got, lost, winner)
		}
		c.checkTimeline(ctx, id, winner, lost)
	}
}

func (c *contest) checkTimeline(ctx context.Context, id, winner string, lost map[string]string) {
	var all []wire.TimelineEntry
	for e, err := range c.admin.ReadEntityTimeline(ctx, "bill", id) {
		c.must(e, err)
		all = append(all, e)
	}
	slices.Reverse(all)
	seen, last, settled := make(map[string]string), int64(-1), 0
	for _, e := range all {
		switch {
		case e.Event != nil:
			if last++; e.Event.Version != last {
				c.t.Errorf("%s: version %d comes after version %d", id, e.Event.Version, last-1)
			}
			if e.Event.Name == "settled/close" {
				if settled++; e.Event.Actor != winner {
					c.t.Errorf("%s: settled by %s, want %s", id, e.Event.Actor, winner)
				}
			}
		case e.Refusal != nil:
			x := e.Refusal
			seen[x.Actor+" "+x.RequestID] = string(x.Code)
			if x.Version != last {
				c.t.Errorf("%s: a refusal at version %d comes after version %d", id, x.Version, last)
			}
			if claimed := settled == 0; x.Code != fault.LeaseLost && claimed != (x.Code == fault.ClaimFailed) {
				c.t.Errorf("%s: refused with %s, settled: %t", id, x.Code, !claimed)
			}
			if x.Code == fault.LeaseLost && (x.Operation == "" || x.Epoch == 0) {
				c.t.Errorf("%s: the late holder lacks its operation or epoch: %+v", id, x)
			}
		}
	}
	if got := fmt.Sprint(seen); settled != 1 || got != fmt.Sprint(lost) {
		c.t.Errorf("%s: settled %d times; the timeline shows %s, but the callers counted %v", id, settled, got, lost)
	}
}
