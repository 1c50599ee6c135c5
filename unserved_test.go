package holdfast_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// shop is a program with work of every kind.
type shop struct {
	t      *testing.T
	hf     *holdfast.Engine
	mu     sync.Mutex
	log    bytes.Buffer
	orders *run.Definition
	labels *batch.Kind[int, int]
	bills  *lifecycle.Lifecycle[struct{}]
}

// Write collects the log.
func (s *shop) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

// warnings returns how often the log says that work is not served, and the last such line.
func (s *shop) warnings() (n int, last string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "due work is not served") {
			n, last = n+1, line
		}
	}
	return n, last
}

const billConfig = `{"workflow": "bill", "owning_module": "m", "status_types": ["open", "closing", "closed"], "initial_status": "open", "janitor": {},
	"steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_claim_state": ["closing", "open"], "successful_state": "closed"}]}`

// openShop opens the program on a database. Its bodies call body.
func openShop(t *testing.T, db string, body func()) *shop {
	s := &shop{t: t}
	work := func(_ context.Context, n int) (int, error) {
		body()
		return n, nil
	}
	s.orders = run.Define("order", "1", run.Task("charge", work, run.Idempotent()))
	s.labels = batch.Define("label", func(ctx context.Context, i *batch.Item[int]) (int, error) { return work(ctx, i.Input) }, batch.Options{MaxWorkers: 1, Cost: batch.Free})
	s.bills = lifecycle.MustParse[struct{}]([]byte(billConfig))
	mail := stream.React("mail", stream.Select{Events: []string{"*"}}, func(context.Context, *stream.Delivery) error {
		body()
		return nil
	}, stream.Options{})
	var err error
	s.hf, err = holdfast.Open(t.Context(), holdfasttest.At(db), holdfast.Config{Log: slog.New(slog.NewTextHandler(s, nil))}, s.orders, s.labels, s.bills, mail, stream.MaxWorkers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.hf.Close() })
	return s
}

// use makes work of every kind.
func (s *shop) use(n int) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	must := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	for i := range n {
		_, err := stream.Append(ctx, s.hf, "s"+string(rune('a'+i)), stream.Any, stream.Event{Name: "a"})
		must(err)
		_, _, err = s.orders.Start(ctx, s.hf, 1)
		must(err)
	}
	_, err := batch.PutWallet(ctx, s.hf, "w", batch.AllowNegative())
	must(err)
	items := make([]batch.NewItem[int], n)
	for i := range items {
		items[i] = batch.NewItem[int]{Key: string(rune('a' + i)), Input: 1}
	}
	_, err = s.labels.Create(ctx, s.hf, "w", slices.Values(items))
	must(err)
}

// TestUnservedWorkIsReported verifies that an engine on which Run was never called names, in one warning, the due work
// that nobody serves, and the claim that a crash left behind; and that it does so only after the periods.
func TestUnservedWorkIsReported(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, db string) {
		s := openShop(t, db, func() {})
		check := func(at time.Duration) bool { return engine.Of(s.hf).Unserved(t.Context(), time.Unix(0, 0).Add(at)) }
		if check(0) || check(engine.UnservedAfter) {
			t.Error("without work, another check is needed")
		}
		s.use(1)
		if !check(time.Hour) || !check(time.Hour+engine.UnservedAfter-1) {
			t.Error("no further check although work is due")
		}
		if n, line := s.warnings(); n != 0 {
			t.Errorf("warned too early: %s", line)
		}
		if check(time.Hour + engine.UnservedAfter) {
			t.Error("another check is needed after the warning")
		}
		check(2 * time.Hour)
		n, line := s.warnings()
		for _, part := range []string{`reaction \"mail\"`, `run steps of handler \"order@1/charge\"`, `items of batch kind \"label\"`, "level=WARN", "Engine.Run"} {
			if n != 1 || !strings.Contains(line, part) {
				t.Errorf("got %d warnings, want one with %s: %s", n, part, line)
			}
		}
	})
}

// TestAnUnreleasedClaimIsReported verifies that an expired claim is reported, but not before a janitor that sweeps seldom
// would have released it.
func TestAnUnreleasedClaimIsReported(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, db string) {
		s := openShop(t, db, func() {})
		if _, err := s.bills.Create(t.Context(), s.hf, "b", struct{}{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.bills.Claim(t.Context(), s.hf, "b", "close", "any"); err != nil {
			t.Fatal(err)
		}
		check := func(at time.Duration) bool { return engine.Of(s.hf).Unserved(t.Context(), time.Unix(0, 0).Add(at)) }
		if check(0) {
			t.Error("a live claim counts as unserved")
		}
		holdfasttest.Advance(t, s.hf, time.Hour)
		if !check(0) || !check(engine.ExpiredAfter-1) {
			t.Error("an expired claim does not count as unserved")
		}
		if n, line := s.warnings(); n != 0 {
			t.Errorf("warned too early: %s", line)
		}
		check(engine.ExpiredAfter)
		if n, line := s.warnings(); n != 1 || !strings.Contains(line, "expired leases (held operation)") {
			t.Errorf("got %d warnings: %s", n, line)
		}
	})
}

// TestServedWorkIsNotReported verifies that an engine that leaves Run to another node does not warn: not if the work is
// done, and not if the other node has more of it than it can do at once. An engine that runs never warns.
func TestServedWorkIsNotReported(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, db string) {
		begun, leave := make(chan struct{}, 100), make(chan struct{})
		server := openShop(t, db, func() {
			begun <- struct{}{}
			<-leave
		})
		caller := openShop(t, db, func() {})
		check := func(s *shop, at time.Duration) bool {
			return engine.Of(s.hf).Unserved(t.Context(), time.Unix(0, 0).Add(at))
		}
		caller.use(20) // a run's worker takes several at once
		check(caller, 0)
		stop := testkit.Run(t, server.hf)
		defer stop()
		defer close(leave)
		for range 3 { // one of each kind holds its lease, and others are due
			<-begun
		}
		testkit.Eventually(t, "every kind of work is leased", func() bool { return !check(caller, 0) })
		for at := time.Duration(0); at < 2*engine.ExpiredAfter; at += engine.UnservedAfter {
			check(caller, at)
			check(server, at)
		}
		for _, s := range []*shop{caller, server} {
			if n, line := s.warnings(); n != 0 {
				t.Errorf("warned although the work is served: %s", line)
			}
		}
	})
}

// TestUnservedWorkIsNoticedInTime verifies that opening the engine and making work cause the checks, that an engine at
// rest runs none, and that Close ends them.
func TestUnservedWorkIsNoticedInTime(t *testing.T) {
	db := holdfasttest.SQLite(t)
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, db, func() {})
		time.Sleep(time.Hour)
		s.use(1)
		time.Sleep(3 * engine.UnservedAfter)
		if n, line := s.warnings(); n != 1 {
			t.Errorf("got %d warnings, want 1: %s", n, line)
		}
		again := openShop(t, db, func() {}) // finds the work that it has not made
		time.Sleep(3 * engine.UnservedAfter)
		if n, line := again.warnings(); n != 1 {
			t.Errorf("after a restart: got %d warnings, want 1: %s", n, line)
		}
		closed := openShop(t, db, func() {})
		if err := closed.hf.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if n, line := closed.warnings(); n != 0 {
			t.Errorf("after Close: %s", line)
		}
	})
}
