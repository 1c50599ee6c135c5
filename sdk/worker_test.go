package sdk

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

// gateway accepts charges and mails. It is the ledger of what the workers did.
type gateway struct {
	mu      sync.Mutex
	charges map[string]map[string]int // calls by entity and key
	mails   map[string]int            // calls by key
	hung    map[string]chan struct{}  // closed when the first request for the entity hangs
	release chan struct{}             // ends the request that hangs for "stopping"
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	id, key := string(body), r.Header.Get("Idempotency-Key")
	g.mu.Lock()
	hangs := g.hung[r.URL.Path+" "+id]
	delete(g.hung, r.URL.Path+" "+id)
	n := 0
	switch {
	case r.URL.Path == "/mails":
		g.mails[key]++
		n = g.mails[key]
	case r.URL.Path == "/charges" && id != "declined":
		if g.charges[id] == nil {
			g.charges[id] = make(map[string]int)
		}
		g.charges[id][key]++
	}
	g.mu.Unlock()
	if hangs != nil {
		close(hangs)
		select {
		case <-r.Context().Done():
			return
		case <-g.release:
		}
	}
	switch {
	case r.URL.Path == "/mails":
		fmt.Fprint(w, n)
	case id == "declined":
		w.WriteHeader(http.StatusPaymentRequired)
	default:
		fmt.Fprint(w, "ref-"+id)
	}
}

// hang makes the first request for an entity hang. The channel is closed when it does.
func (g *gateway) hang(path, id string) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := make(chan struct{})
	g.hung[path+" "+id] = c
	return c
}

func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("%s: timed out", what)
	}
}

// lifecycleOf returns the config of a lifecycle with one step that a worker executes.
func lifecycleOf(name, handler string) []byte {
	return fmt.Appendf(nil, `{"workflow":%q,"owning_module":"billing","status_types":["open","busy","done"],"initial_status":"open","janitor":{},
		"steps":[{"step_id":1,"step_key":"act","status":"open","successful_claim_state":["busy","open"],"successful_state":"done","action":%q}]}`, name, handler)
}

// shop is a server, a gateway, and the workers of one language.
type shop struct {
	t *testing.T
	*client.Client
	language
	gateway *gateway
	env     []string
	workers int
}

func openShop(t *testing.T, l language) *shop {
	t.Helper()
	g := &gateway{charges: make(map[string]map[string]int), mails: make(map[string]int), hung: make(map[string]chan struct{}), release: make(chan struct{})}
	far := httptest.NewServer(g)
	t.Cleanup(far.Close)
	url := serve(t)
	s := &shop{t: t, Client: dial(t, url), language: l, gateway: g, env: []string{"HOLDFAST_URL=" + url, "GATEWAY_URL=" + far.URL}}
	ctx := t.Context()
	for name, h := range map[string]wire.PutHandler{"Charge": {Safety: "journaled", OnUnknown: "retry"}, "Mail": {Safety: "idempotent"}, "Print": {Safety: "opaque", OnUnknown: "hold"}, "Stamp": {Safety: "opaque", OnUnknown: "probe"}} {
		h.Kind = "worker"
		_, err := s.PutHandler(ctx, name, h)
		s.must(err)
	}
	for name, handler := range map[string]string{"invoice": "Charge", "label": "Print", "letter": "Stamp"} {
		_, err := s.PutLifecycle(ctx, name, lifecycleOf(name, handler))
		s.must(err)
	}
	_, err := s.PutReaction(ctx, "mail", wire.PutReaction{Events: []string{"*"}, Streams: "^mail-", Handler: "Mail", Backoff: &wire.Backoff{Kind: "fixed", BaseMs: 1, MaxMs: 1}})
	s.must(err)
	return s
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) start() *testkit.Child {
	s.t.Helper()
	s.workers++
	c := testkit.Start(s.t, s.command(s.t, "worker", nil, append(s.env, fmt.Sprintf("WORKER=w%d", s.workers))...))
	c.Expect("ready")
	return c
}

func (s *shop) create(lifecycle, id string) {
	s.t.Helper()
	_, err := s.CreateEntity(s.t.Context(), lifecycle, wire.NewEntity{ID: &id, Data: []byte(`{}`)})
	s.must(err)
}

// fire creates an entity and fires its step. wait returns the outcome.
func (s *shop) fire(id string) (wait func() (wire.Fired, error)) {
	s.t.Helper()
	s.create("invoice", id)
	var fired wire.Fired
	var err error
	var done sync.WaitGroup
	done.Go(func() {
		fired, err = s.FireStep(s.t.Context(), "invoice", id, "act", wire.Fire{Requester: "admin"}, client.Wait(50*time.Second))
	})
	return func() (wire.Fired, error) { done.Wait(); return fired, err }
}

// done verifies that a step has ended with the receipt of its charge, and returns the calls of the gateway by key.
func (s *shop) done(id string, wait func() (wire.Fired, error)) map[string]int {
	s.t.Helper()
	fired, err := wait()
	if err != nil || fired.Outcome != "success" || fired.Entity.Status != "done" || !strings.Contains(string(fired.Entity.Data), "ref-"+id) {
		s.t.Fatalf("%s: got %+v, %s, error %v", id, fired, fired.Entity.Data, err)
	}
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	return s.gateway.charges[id]
}

// TestWorkers verifies the workers: a worker that is killed in the middle of a step is replaced by another one, and the card is
// charged once; each kind of error is reported as such; and SIGTERM lets the task in execution end.
func TestWorkers(t *testing.T) {
	testlevel.OneGoroutine(t)
	t.Parallel()
	each(t, func(t *testing.T, l language) {
		s := openShop(t, l)
		worker := s.start()

		// Killed after the effect was recorded: the card is not charged again.
		hung := s.gateway.hang("/charged", "recorded")
		wait := s.fire("recorded")
		await(t, "the request after the charge", hung)
		worker.Kill()
		worker = s.start()
		if calls := s.done("recorded", wait); len(calls) != 1 || total(calls) != 1 {
			t.Errorf("the gateway was called %v times by key, want one key once", calls)
		}

		// Killed during the effect: the call is repeated with the same key.
		hung = s.gateway.hang("/charges", "calling")
		wait = s.fire("calling")
		await(t, "the charge", hung)
		worker.Kill()
		worker = s.start()
		if calls := s.done("calling", wait); len(calls) != 1 || total(calls) < 2 {
			t.Errorf("the gateway was called %v times by key, want one key twice", calls)
		}

		_, err := s.fire("declined")()
		testkit.WantCode(t, err, fault.ActionInvalid, "declined")
		s.mails()
		s.print()
		s.stamp()

		hung = s.gateway.hang("/charged", "stopping")
		wait = s.fire("stopping")
		await(t, "the last charge", hung)
		worker.Signal(syscall.SIGTERM)
		s.done("final", s.fire("final")) // for the claim that is in progress
		close(s.gateway.release)
		s.done("stopping", wait)
		worker.Expect("charged")
		worker.Expect("stopped") // run has waited for the task
		worker.Wait()
	})
}

func total(calls map[string]int) (n int) {
	for _, one := range calls {
		n += one
	}
	return n
}

// mails verifies that events are handled in order, that a snoozed and a failed event is handled again, and that an event that
// cannot be handled blocks its stream.
func (s *shop) mails() {
	s.t.Helper()
	ctx := s.t.Context()
	_, err := s.AppendEvents(ctx, "mail-1", wire.Append{Events: []wire.NewEvent{{Name: "plain"}, {Name: "later"}, {Name: "flaky"}}})
	s.must(err)
	_, err = s.AppendEvents(ctx, "mail-2", wire.Append{Events: []wire.NewEvent{{Name: "hopeless"}}})
	s.must(err)
	testkit.Eventually(s.t, "mail-1 is handled, and mail-2 is blocked", func() bool {
		handled, blocked := false, false
		for p, err := range s.ListPositions(ctx, "mail", client.PositionFilter{}) {
			s.must(err)
			handled = handled || p.Stream == "mail-1" && p.Watermark == 2
			blocked = blocked || p.Stream == "mail-2" && p.Blocked && strings.Contains(p.Error, "has no address")
		}
		return handled && blocked
	})
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	for key, want := range map[string]int{"mail/mail-1/0/0": 1, "mail/mail-1/1/0": 2, "mail/mail-1/2/0": 2, "mail/mail-2/0/0": 1} {
		if got := s.gateway.mails[key]; got != want {
			s.t.Errorf("the mail %s was sent %d times, want %d; all: %v", key, got, want, s.gateway.mails)
		}
	}
}

// print verifies that the operation of an opaque handler that does not know what happened waits for an operator.
func (s *shop) print() {
	s.t.Helper()
	ctx := s.t.Context()
	s.create("label", "l-1")
	_, err := s.FireStep(ctx, "label", "l-1", "act", wire.Fire{Requester: "admin"}, client.Wait(time.Millisecond))
	s.must(err)
	testkit.Eventually(s.t, "the operation is uncertain", func() bool {
		for o, err := range s.ListOperations(ctx, client.OperationFilter{State: "uncertain"}) {
			s.must(err)
			if o.Subject == "label/l-1" {
				return true
			}
		}
		return false
	})
}

// stamp verifies that a probe settles the step of an opaque handler that does not know what happened.
func (s *shop) stamp() {
	s.t.Helper()
	s.create("letter", "l-1")
	fired, err := s.FireStep(s.t.Context(), "letter", "l-1", "act", wire.Fire{Requester: "admin"}, client.Wait(50*time.Second))
	if err != nil || fired.Outcome != "success" || !strings.Contains(string(fired.Entity.Data), "red") {
		s.t.Errorf("got %+v, %s, error %v, want the state of the probe", fired, fired.Entity.Data, err)
	}
}
