package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/inbox"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// inbox returns the entries of a kind.
func (d *testAPI) inbox(kind inbox.Kind) []wire.InboxItem {
	d.t.Helper()
	var in wire.List[wire.InboxItem]
	d.want(d.ask("GET", "inbox?kind="+string(kind), nil, &in), 200, "")
	return in.Items
}

// counted checks the number of entries of a kind.
func (d *testAPI) counted(kind inbox.Kind, n int) {
	d.t.Helper()
	var in wire.InboxCounts
	d.want(d.ask("GET", "inbox/counts?kind="+string(kind), nil, &in), 200, "")
	if len(in.Counts) != 1 || in.Counts[0] != (wire.InboxCount{Kind: string(kind), Count: n}) {
		d.t.Errorf("got counts %+v, want %d", in.Counts, n)
	}
}

// measured checks the number of entries of a kind in the metrics, if it is there.
func (d *testAPI) measured(kind inbox.Kind, n int) {
	d.t.Helper()
	if slices.Contains(inbox.Counted, kind) {
		d.api.MeasureAgain()
		d.wantMetrics(fmt.Sprintf(`holdfast_inbox_entries{kind="%s"} %d`, kind, n))
	}
	if alert := alertOf(kind); alert != "" {
		d.evaluate("", n > 0, alert)
	}
}

// alertOf returns the alert about entries of a kind, or "" if there is none, or none that fires as soon as there is an entry.
func alertOf(kind inbox.Kind) string {
	switch kind {
	case inbox.PendingApproval:
		return ""
	case inbox.StalledJanitor:
		return "HoldfastJanitorStalled"
	}
	return "Holdfast" + strings.ToUpper(string(kind[:1])) + string(kind[1:])
}

// listed waits for the only entry of a kind, logs how long that took, and checks the entry.
func (d *testAPI) listed(kind inbox.Kind, subject, reason string) wire.InboxItem {
	d.t.Helper()
	var in []wire.InboxItem
	begun := clock.Now()
	testkit.Eventually(d.t, string(kind)+" is listed", func() bool { in = d.inbox(kind); return len(in) > 0 })
	d.t.Logf("%s is listed after %s", kind, clock.Since(begun))
	x := in[0]
	if len(in) != 1 {
		d.t.Fatalf("listed %+v, want one entry", in)
	}
	d.counted(kind, 1)
	d.measured(kind, 1)
	if x.Kind != string(kind) || !strings.Contains(x.Subject, subject) || !strings.Contains(x.Reason, reason) || !strings.ContainsAny(x.Reason[max(0, len(x.Reason)-1):], ".?") || x.Since == nil || x.ID == "" || x.Action.Label == "" {
		d.t.Errorf("listed %+v, want subject %q and reason %q", x, subject, reason)
	}
	d.sees(x)
	return x
}

// act calls an action as it is given.
func (d *testAPI) act(a wire.InboxAction) {
	d.t.Helper()
	path, ok := strings.CutPrefix(a.Route, "/api/v1/")
	if !ok || a.Method == "" {
		d.t.Fatalf("action %+v cannot be called", a)
	}
	if d.clicks(a) {
		return
	}
	if resp := d.ask(a.Method, path, string(a.Body), nil); resp.StatusCode >= 300 {
		d.t.Fatalf("%s %s %s returned %d %s", a.Method, a.Route, a.Body, resp.StatusCode, textOf(resp))
	}
}

// gone waits until a kind has no entries, and checks the database.
func (d *testAPI) gone(kind inbox.Kind) {
	d.t.Helper()
	testkit.Eventually(d.t, string(kind)+" is gone", func() bool { return len(d.inbox(kind)) == 0 })
	d.unseen(kind)
	d.counted(kind, 0)
	d.measured(kind, 0)
	report, err := d.engine.Check(d.t.Context())
	if err != nil || len(report.Violations) > 0 {
		d.t.Errorf("check found %+v, %v", report, err)
	}
}

func (d *testAPI) worker(name, safety string) {
	d.t.Helper()
	d.want(d.ask("PUT", "handlers/"+name, wire.PutHandler{Kind: "worker", Safety: safety}, nil), 201, "")
}

func (d *testAPI) define(text string) {
	d.t.Helper()
	d.want(d.ask("POST", "workflow-definitions", text, nil), 201, "")
}

// inboxCases make one entry each, without a running engine.
var inboxCases = []struct {
	kind            inbox.Kind
	make            func(*testAPI)
	subject, reason string
	owner           string
	deadline        bool
	label           string // of the action, if several are possible
}{
	{inbox.UncertainOperation, func(d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "opaque"})
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		d.one("Do")
		d.advance(10 * time.Minute)
		d.want(d.ask("POST", "maintenance", nil, nil), 200, "")
	}, "job/j", `It is not known whether an effect of step "do" happened`, "admin", false, "It did not happen: end the operation"},
	{inbox.UncertainOperation, func(d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		x := d.one("Do")
		for _, e := range []wire.EffectCall{{Name: "print"}, {Name: "print", Result: []byte(`1`)}, {Name: "mail"}} {
			e.Epoch = x.Epoch
			d.want(d.ask("POST", "tasks/"+x.ID+"/effects", e, nil), 200, "")
		}
		d.advance(10 * time.Minute)
		x = d.one("Do")
		d.ask("POST", "tasks/"+x.ID+"/effects", wire.EffectCall{Name: "mail", Epoch: x.Epoch}, nil)
	}, "job/j", `It is not known whether an effect of step "do" happened`, "admin", false, "It did not happen: try it again"},
	{inbox.UncertainStep, func(d *testAPI) {
		d.worker("Pay", "opaque")
		d.define(oneTask("pay", "Pay"))
		d.start("pay@1", `{}`)
		d.one("Pay")
		d.advance(time.Hour)
		d.want(d.ask("POST", "maintenance", nil, nil), 200, "")
	}, "/do", `It is not known whether an effect of step "do" happened`, "Pay", false, "It did not happen: try it again"},
	{inbox.BlockedStream, func(d *testAPI) {
		d.worker("Mail", "idempotent")
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"paid"}, Handler: "Mail"}, nil), 201, "")
		d.want(d.ask("POST", "streams/o1/events", `{"events":[{"name":"paid"}]}`, nil), 201, "")
		x, no := d.one("Mail"), false
		d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no such address", Retryable: &no}, nil), 200, "")
	}, "mail on o1", "failed at version 0 after 1 failure and is blocked on this stream: no such address.", "", false, ""},
	{inbox.FailedRun, func(d *testAPI) {
		d.worker("Pay", "idempotent")
		d.define(oneTask("pay", "Pay"))
		d.start("pay@1", `{}`)
		x, no := d.one("Pay"), false
		d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "card refused", Retryable: &no}, nil), 200, "")
	}, "run_", `The run of pay@1 failed at step "do"`, "", false, ""},
	{inbox.PendingApproval, func(d *testAPI) {
		d.define(`{"name":"ask","version":"1","steps":[{"name":"ok","type":"approval","prompt":"Pay 100?","requesters":["boss"],"timeoutMs":3600000}]}`)
		d.start("ask@1", `{}`)
	}, "/ok", `The run waits for a decision at step "ok": Pay 100?`, "boss", true, ""},
	{inbox.OverdueSignal, func(d *testAPI) {
		d.define(`{"name":"hear","version":"1","steps":[{"name":"paid","type":"event","signal":"paid","timeoutMs":60000}]}`)
		d.start("hear@1", `{}`)
		d.advance(2 * time.Minute)
	}, "/paid", `Step "paid" is still waiting for a signal although its deadline has passed`, "", true, ""},
	{inbox.PausedBatch, func(d *testAPI) {
		d.worker("Print", "idempotent")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{}, nil), 200, "")
		d.want(d.ask("POST", "wallets/w/credit", wire.Credit{Points: 3, Reference: "r"}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Print", Items: newItems(10, "a")}, nil), 201, "")
		d.claimItems("Print", 1)
	}, "b", `Wallet "w" has 3 points and the next item costs 10, so 7 are missing.`, "w", false, ""},
	{inbox.ExpiredLease, func(d *testAPI) {
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		d.one("Do")
		d.advance(10 * time.Minute)
	}, "job/j", "The lease of w1 on this operation of an entity is past its end, and no janitor has released it.", "w1", false, ""},
	{inbox.ExpiredLease, func(d *testAPI) {
		d.worker("Pay", "idempotent")
		d.define(oneTask("pay", "Pay"))
		d.start("pay@1", `{}`)
		d.one("Pay")
		d.advance(10 * time.Minute)
	}, "/do", "The lease of w1 on this step of a run is past its end", "w1", false, ""},
	{inbox.ExpiredLease, func(d *testAPI) {
		d.worker("Print", "idempotent")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Print", Items: newItems(10, "a")}, nil), 201, "")
		if got := d.claimItems("Print", 1); len(got) != 1 {
			d.t.Fatalf("claimed %+v, want one item", got)
		}
		d.advance(10 * time.Minute)
	}, "b/a", "The lease of w1 on this item of a batch is past its end", "w1", false, ""},
	{inbox.ExpiredLease, func(d *testAPI) {
		d.worker("Mail", "idempotent")
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"paid"}, Handler: "Mail"}, nil), 201, "")
		d.want(d.ask("POST", "streams/o1/events", `{"events":[{"name":"paid"}]}`, nil), 201, "")
		d.one("Mail")
		d.advance(10 * time.Minute)
	}, "mail/o1", "The lease of w1 on this delivery to a reaction is past its end", "w1", false, ""},
	{inbox.HeldUpRetention, func(d *testAPI) {
		d.want(d.ask("POST", "streams/o1/events", `{"events":[{"name":"paid"},{"name":"paid"}]}`, nil), 201, "")
		d.numbered(2)
		d.want(d.ask("POST", "streams/o1/truncate", `{"before":1}`, nil), 200, "")
		d.advance(2 * time.Hour)
	}, "streams", `The removed events of 1 stream should have been deleted, beginning with "o1".`, "", false, ""},
	{inbox.HeldUpRetention, func(d *testAPI) {
		d.define(`{"name":"short","version":"1","retentionMs":1000,"steps":[{"name":"one","type":"wait","durationMs":1000}]}`)
		d.start("short@1", `{}`)
		d.advance(time.Minute)
		d.want(d.ask("POST", "maintenance", nil, nil), 200, "")
		d.advance(2 * time.Hour)
	}, "runs", "1 run should have been deleted when its retention ended, beginning with run_", "", false, ""},
	{inbox.HeldUpRetention, func(d *testAPI) {
		d.worker("Print", "idempotent")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil), 200, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Print", RetentionMs: 1000, Items: newItems(10, "a")}, nil), 201, "")
		d.want(d.ask("POST", "batches/b/cancel", nil, nil), 200, "")
		d.advance(2 * time.Hour)
	}, "batches", `The items of 1 batch should have been deleted after their retention, beginning with "b".`, "", false, ""},
}

// TestTheInbox verifies for each kind that the entry is listed with its reason, owner and deadline, that its action can be
// called as given, and that it is gone afterwards.
func TestTheInbox(t *testing.T) {
	for _, c := range inboxCases {
		t.Run(string(c.kind), func(t *testing.T) {
			eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
				d.seen(t, c.kind)
				d.gone(c.kind)
				c.make(d)
				x := d.listed(c.kind, c.subject, c.reason)
				if x.Owner != c.owner || (x.Deadline != nil) != c.deadline {
					t.Errorf("got owner %q and deadline %v, want %q and %t", x.Owner, x.Deadline, c.owner, c.deadline)
				}
				if c.label != "" && x.Action.Label != c.label {
					t.Errorf("got action %q, want %q", x.Action.Label, c.label)
				}
				d.act(x.Action)
				d.gone(c.kind)
			})
		})
	}
}

// TestTheAlternatives verifies that the other actions of an entry can be called as given too.
func TestTheAlternatives(t *testing.T) {
	for _, c := range inboxCases {
		t.Run(string(c.kind), func(t *testing.T) {
			eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
				c.make(d)
				if others := d.listed(c.kind, c.subject, c.reason).Others; len(others) > 0 {
					d.act(others[len(others)-1])
					d.gone(c.kind)
				}
			})
		})
	}
}

// TestARefusedWebhookIsListed verifies that a webhook whose receiver is gone is listed until it is unblocked.
func TestARefusedWebhookIsListed(t *testing.T) {
	eachTestAPI(t, hooked, func(t *testing.T, d *testAPI) {
		d.seen(t, inbox.RefusedWebhook)
		d.running()
		var status atomic.Int64
		status.Store(410)
		r := receive(t, func(received) int { return int(status.Load()) })
		var w wire.CreatedWebhook
		d.want(d.ask("POST", "webhooks", wire.NewWebhook{Name: "x", URL: r.URL, Events: []string{"paid"}}, &w), 201, "")
		d.want(d.ask("POST", "streams/o1/events", `{"events":[{"name":"paid"}]}`, nil), 201, "")
		testkit.Eventually(t, "the webhook is blocked", func() bool { return len(d.inbox(inbox.RefusedWebhook)) > 0 })
		x := d.listed(inbox.RefusedWebhook, "webhook "+w.ID+" on o1", "The receiver did not accept version 0")
		if n := d.inbox(inbox.BlockedStream); len(n) != 0 {
			t.Errorf("also listed as %+v", n)
		}
		status.Store(200)
		d.act(x.Action)
		d.gone(inbox.RefusedWebhook)
	})
}

// TestAFailingTeardownIsListed verifies that a batch whose teardown fails, after it was cancelled, and one whose cleanup of a failed item
// fails, is listed until that succeeds.
func TestAFailingTeardownIsListed(t *testing.T) {
	var fine, fails atomic.Bool
	k := batch.Define("print", func(context.Context, *batch.Item[int]) (int, error) {
		if fails.Load() {
			return 0, fault.NonRetryable(errors.New("no paper"))
		}
		return 1, nil
	}, batch.Options{}).
		Undo(func(context.Context, *batch.Undone[int, int]) error {
			if fine.Load() {
				return nil
			}
			return errors.New("the printer is on fire")
		})
	for _, db := range []string{"sqlite", "postgres"} {
		for _, cancelled := range []bool{false, true} {
			t.Run(fmt.Sprint(db, " cancelled ", cancelled), func(t *testing.T) {
				fine.Store(false)
				fails.Store(!cancelled)
				d := newTestAPI(t, openOn(t, db, holdfast.Config{}, k), elsewhere)
				d.seen(t, inbox.FailingTeardown)
				d.running()
				d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil), 200, "")
				d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "print", Open: true, Items: []wire.NewItem{{Key: "a", Cost: new(int64(1)), Input: []byte(`1`)}}}, nil), 201, "")
				reason := "The teardown or cleanup of the RUNNING batch fails"
				if cancelled {
					testkit.Eventually(t, "the item is done", func() bool { return d.batch("b").Counts.Succeeded == 1 })
					d.want(d.ask("POST", "batches/b/cancel", nil, nil), 202, "")
					reason = "The teardown or cleanup of the CANCELLING batch fails"
				}
				testkit.Eventually(t, "the teardown has failed", func() bool { return d.batch("b").Error != "" })
				if x := d.listed(inbox.FailingTeardown, "b", "the printer is on fire."); !strings.Contains(x.Reason, reason) {
					t.Errorf("got the reason %q, want %q in it", x.Reason, reason)
				}
				fine.Store(true)
				d.advance(2 * time.Minute)
				d.gone(inbox.FailingTeardown)
			})
		}
	}
}

// openOn opens an engine with a config on one of the databases.
func openOn(t *testing.T, db string, c holdfast.Config, parts ...holdfast.Part) *holdfast.Engine {
	t.Helper()
	at := holdfasttest.At(holdfasttest.SQLite(t))
	if db == "postgres" {
		at = holdfasttest.At(holdfasttest.PostgreSQL(t))
	}
	c.Log = slog.New(slog.DiscardHandler)
	e, err := holdfast.Open(t.Context(), at, c, parts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// TestAStreamLeftClosingIsListed verifies that a stream whose closer did not finish is listed until a janitor reopens it.
func TestAStreamLeftClosingIsListed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) { // without a feed, which would have to be ahead of the close
		d := newTestAPI(t, e, elsewhere)
		d.want(d.ask("POST", "streams/o1/events", `{"events":[{"name":"paid"}]}`, nil), 201, "")
		exporting, free := make(chan struct{}), make(chan struct{})
		unblock := sync.OnceFunc(func() { close(free) })
		defer unblock()
		ended := make(chan error, 1)
		go func() {
			_, err := stream.Close(context.Background(), d.engine, "o1", stream.Archive, stream.Export(func(context.Context, []stream.Event) error {
				close(exporting)
				<-free
				return nil
			}))
			ended <- err
		}()
		select {
		case <-exporting:
		case err := <-ended:
			t.Fatal(err)
		}
		d.seen(t, inbox.ClosingStream)
		d.gone(inbox.ClosingStream)
		d.advance(time.Hour)
		x := d.listed(inbox.ClosingStream, "o1", "began to close the stream at version 0 and did not finish")
		d.act(x.Action)
		d.gone(inbox.ClosingStream)
		d.want(d.ask("POST", "streams/o1/events", `{"events":[{"name":"paid"}]}`, nil), 201, "")
		unblock()
		if err := <-ended; err == nil {
			t.Error("the closer closed the stream after it lost its lease")
		}
	})
}

// TestWorkThatNobodyServesIsListed verifies that due work is listed if no node and no worker polls for it, and only then.
func TestWorkThatNobodyServesIsListed(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.worker("Mail", "idempotent")
		d.want(d.ask("PUT", "reactions/mail", wire.PutReaction{Events: []string{"paid"}, Handler: "Mail"}, nil), 201, "")
		d.worker("Print", "idempotent")
		d.want(d.ask("PUT", "wallets/w", wire.PutWallet{AllowNegative: true}, nil), 200, "")
		d.worker("Pay", "idempotent")
		d.define(oneTask("pay", "Pay"))
		d.jobs(wire.PutHandler{Kind: "worker", Safety: "journaled"})
		d.seen(t, inbox.UnservedWork)
		d.gone(inbox.UnservedWork)
		d.want(d.ask("POST", "streams/o1/events", `{"events":[{"name":"paid"}]}`, nil), 201, "")
		d.want(d.ask("POST", "batches", wire.NewBatch{ID: new("b"), Wallet: "w", Handler: "Print", Items: newItems(10, "a")}, nil), 201, "")
		d.start("pay@1", `{}`)
		d.want(d.ask("POST", "lifecycles/job/entities/j/steps/do?waitMs=0", wire.Fire{Requester: "admin"}, nil), 202, "")
		d.gone(inbox.UnservedWork) // not yet
		d.advance(time.Minute)
		subjects := func() (all []string) {
			for _, x := range d.inbox(inbox.UnservedWork) {
				all = append(all, x.ID)
			}
			return all
		}
		if got := strings.Join(subjects(), " "); len(subjects()) != 4 || !strings.Contains(got, "reaction/mail") || !strings.Contains(got, "batch/Print") || !strings.Contains(got, "step/Pay") || !strings.Contains(got, "operation/h:default:Do") {
			t.Fatalf("listed %s, want the four handlers", got)
		}
		for _, x := range d.inbox(inbox.UnservedWork) {
			d.sees(x)
		}
		d.measured(inbox.UnservedWork, 4)
		d.running()
		for _, handler := range []string{"Mail", "Print", "Pay", "Do"} { // a worker that polls and is lost again
			if got := d.claimItems(handler, 1); len(got) != 1 {
				t.Fatalf("claimed %+v of %s, want one task", got, handler)
			}
		}
		d.gone(inbox.UnservedWork)
		engine.Of(d.engine).Reporter().Now(t.Context())
		d.advance(10 * time.Minute) // their leases expire
		d.want(d.ask("POST", "maintenance", nil, nil), 200, "")
		d.advance(time.Minute)
		engine.Of(d.engine).Reporter().Now(t.Context())
		if got := subjects(); len(got) != 0 {
			t.Errorf("listed %v, want nothing: workers polled within the last minute", got)
		}
		d.measured(inbox.UnservedWork, 0)
		other := []string{"X-Holdfast-Workspace", "other"} // where no worker polls
		d.want(d.ask("PUT", "handlers/Pay", wire.PutHandler{Kind: "worker", Safety: "idempotent"}, nil, other...), 201, "")
		d.want(d.ask("POST", "workflow-definitions", oneTask("pay", "Pay"), nil, other...), 201, "")
		d.want(d.ask("POST", "workflow-runs", wire.StartRun{DefinitionID: "pay@1"}, nil, other...), 201, "")
		d.claimItems("Pay", 1)
		d.advance(time.Minute)
		engine.Of(d.engine).Reporter().Now(t.Context())
		d.measured(inbox.UnservedWork, 1)
	})
}

// TestAVersionThatNobodyServesIsListed verifies that the runs of a Go definition are listed until a node that has it runs.
func TestAVersionThatNobodyServesIsListed(t *testing.T) {
	d := run.Define("pay", "1", run.Task("charge", func(context.Context, struct{}) (int, error) { return 1, nil }, run.Idempotent()))
	eachTestAPI(t, elsewhere, func(t *testing.T, a *testAPI) {
		a.seen(t, inbox.UnservedVersion)
		for range 2 {
			if _, _, err := d.Start(t.Context(), a.engine, struct{}{}); err != nil {
				t.Fatal(err)
			}
		}
		a.advance(time.Minute)
		x := a.listed(inbox.UnservedVersion, "pay@1", `Runs of pay@1 wait at step "charge", and no node that has this version is running.`)
		if x.Action.Method != "" || len(x.Others) != 1 {
			t.Errorf("got %+v, want an action outside of Holdfast and one alternative", x)
		}
		a.act(x.Others[0]) // cancels one of two runs
		a.listed(inbox.UnservedVersion, "pay@1", "")
		a.running()
		a.gone(inbox.UnservedVersion)
	}, d)
}

// TestAStalledJanitorIsListed verifies that a node whose sweeps fail is listed until they succeed.
func TestAStalledJanitorIsListed(t *testing.T) {
	for _, db := range []string{"sqlite", "postgres"} {
		t.Run(db, func(t *testing.T) {
			e := openOn(t, db, holdfast.Config{SweepEvery: time.Millisecond})
			var fine atomic.Bool
			engine.Of(e).Sweep("broken", func(context.Context) (int, error) {
				if fine.Load() {
					return 0, nil
				}
				return 0, errors.New("no space left")
			})
			d := newTestAPI(t, e, elsewhere)
			d.seen(t, inbox.StalledJanitor)
			d.running()
			testkit.Eventually(t, "the janitor has stalled", func() bool { _, err := e.Status(t.Context()); return err != nil })
			engine.Of(e).Reporter().Now(t.Context())
			x := d.listed(inbox.StalledJanitor, engine.Of(e).Node(), "sweep broken: no space left.")
			fine.Store(true)
			d.act(x.Action)
			d.gone(inbox.StalledJanitor)
		})
	}
}

// TestAnOldSnapshotIsListed verifies that a transaction that has been open for long is listed until it ends.
func TestAnOldSnapshotIsListed(t *testing.T) {
	url := holdfasttest.PostgreSQL(t)
	e, err := holdfast.Open(t.Context(), holdfasttest.At(url), holdfast.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	d := newTestAPI(t, e, elsewhere)
	d.seen(t, inbox.OldSnapshot)
	d.running()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM pg_class LIMIT 1`); err != nil {
		t.Fatal(err)
	}
	d.advance(2 * inbox.SnapshotAge)
	engine.Of(e).Reporter().Now(t.Context())
	x := d.listed(inbox.OldSnapshot, "database", "until it ends the database cannot remove rows")
	if !strings.Contains(x.Owner, "idle in transaction") || x.Action.Method != "" {
		t.Errorf("got %+v", x)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the snapshot is gone", func() bool {
		engine.Of(e).Reporter().Now(t.Context())
		return len(d.inbox(inbox.OldSnapshot)) == 0
	})
	d.gone(inbox.OldSnapshot)
}

// TestTheInboxInPages verifies that the pages of the inbox have each entry once, oldest first, whatever the kinds, and that an
// unknown kind is refused.
func TestTheInboxInPages(t *testing.T) {
	eachTestAPI(t, elsewhere, func(t *testing.T, d *testAPI) {
		d.worker("Pay", "idempotent")
		d.define(oneTask("pay", "Pay"))
		d.define(`{"name":"ask","version":"1","steps":[{"name":"ok","type":"approval","prompt":"?"}]}`)
		for i := range 7 {
			if d.start("ask@1", `{}`); i%2 == 0 {
				d.start("pay@1", `{}`)
				x, no := d.one("Pay"), false
				d.want(d.ask("POST", "tasks/"+x.ID+"/fail", wire.FailTask{Epoch: x.Epoch, Message: "no", Retryable: &no}, nil), 200, "")
			}
			d.advance(time.Second)
		}
		var all []wire.InboxItem
		for cursor := ""; ; {
			var in wire.List[wire.InboxItem]
			d.want(d.ask("GET", "inbox?limit=3"+cursor, nil, &in), 200, "")
			all = append(all, in.Items...)
			if in.Next == nil {
				break
			}
			cursor = "&cursor=" + *in.Next
		}
		kinds, seen := map[string]int{}, map[string]bool{}
		for i, x := range all {
			kinds[x.Kind]++
			seen[x.Kind+x.ID] = true
			if i > 0 && x.Since.Before(all[i-1].Since.Time) {
				t.Errorf("entry %d is older than the one before it", i)
			}
		}
		if len(all) != 11 || len(seen) != 11 || kinds["pendingApproval"] != 7 || kinds["failedRun"] != 4 {
			t.Errorf("got %v in %d entries, want 7 approvals and 4 failed runs", kinds, len(all))
		}
		d.want(d.ask("GET", "inbox?kind=failedRun,nothing", nil, nil), 400, fault.Validation)
		d.want(d.ask("GET", "inbox?cursor=x", nil, nil), 400, fault.Validation)
	})
}
