package holdfast_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/run/httpcall"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/stream"
)

// TestDeclarationsThatCannotWork verifies that Open refuses a part without a function and an option that is out of range, both with
// VALIDATION, and a name that is declared twice with CONFLICT.
func TestDeclarationsThatCannotWork(t *testing.T) {
	type none = struct{}
	type act = func(context.Context, *lifecycle.Act[none]) error
	bill := func() *lifecycle.Lifecycle[none] {
		return lifecycle.MustParse[none]([]byte(`{"workflow": "bill", "owning_module": "billing", "initial_status": "open", "status_types": ["open", "closed"],
			"steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": "closed", "action": "Act", "validation": "Check", "success_after_effect": "Mail"}]}`))
	}
	handled := func(a, v, m act) *lifecycle.Lifecycle[none] {
		return bill().Action("Act", a, lifecycle.Idempotent()).Validation("Check", v).AfterEffect("Mail", m)
	}
	acts := act(func(context.Context, *lifecycle.Act[none]) error { return nil })
	task := func(context.Context, any) (int, error) { return 0, nil }
	item := func(context.Context, *batch.Item[int]) (int, error) { return 0, nil }
	react := func(context.Context, *stream.Delivery) error { return nil }
	apply := func(context.Context, holdfast.Tx, stream.Event) error { return nil }
	clean := func(context.Context, holdfast.Tx) error { return nil }
	kind := func(o batch.Options) holdfast.Part { return batch.Define("k", item, o) }
	waits := func() holdfast.Part { return run.Define("waits", "1", run.Wait("nap", time.Hour)) }
	named := func() *run.Definition {
		return run.MustParse([]byte(`{"name": "named", "version": "1", "steps": [{"name": "a", "type": "task", "handler": "H"}]}`))
	}
	files, err := batch.FileStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	header := func(name string) holdfast.Part {
		return run.Define("call", "1", run.Call("c", "GET", "http://localhost", run.Header(name, "x")))
	}
	undo := func(context.Context, *batch.Undone[int, int]) error { return nil }
	policy := lifecycle.WithRetry(holdfast.RetryPolicy{MaxAttempts: 2})
	calls := run.Calls(httpcall.With(http.DefaultClient))
	parts := func(all ...holdfast.Part) []holdfast.Part { return all }
	for code, cases := range map[fault.Code]map[string][]holdfast.Part{
		"": {
			"what works": parts(handled(acts, acts, acts), run.Define("d", "1", run.Task("t", task)), run.Handle(named(), "H", task), kind(batch.Options{}), stream.React("r", stream.Select{}, react, stream.Options{}),
				stream.Project("p", stream.Select{}, apply, clean, stream.Options{}), waits(), run.Retention(0), calls, header("X-Key"), batch.Artifacts(files)),
		},
		fault.Validation: {
			"Task without a function":           parts(run.Define("d", "1", run.Task[any, int]("t", nil))),
			"Handle without a function":         parts(run.Handle[any, int](named(), "H", nil)),
			"Define without a function":         parts(batch.Define[int, int]("k", nil, batch.Options{})),
			"Undo without a function":           parts(batch.Define("k", item, batch.Options{}).Undo(nil)),
			"React without a function":          parts(stream.React("r", stream.Select{}, nil, stream.Options{})),
			"Project without apply":             parts(stream.Project("p", stream.Select{}, nil, clean, stream.Options{})),
			"Project without clear":             parts(stream.Project("p", stream.Select{}, apply, nil, stream.Options{})),
			"Action without a function":         parts(handled(nil, acts, acts)),
			"Validation without a function":     parts(handled(acts, nil, acts)),
			"AfterEffect without a function":    parts(handled(acts, acts, nil)),
			"RecoveredBy without a janitor":     parts(handled(acts, acts, acts).RecoveredBy(nil)),
			"httpcall without a client":         parts(run.Calls(httpcall.With(nil))),
			"Artifacts without a store":         parts(batch.Artifacts(nil)),
			"MaxConcurrency is out of range":    parts(kind(batch.Options{MaxConcurrency: 1 << 30})),
			"MaxAttempts is out of range":       parts(kind(batch.Options{Retry: holdfast.RetryPolicy{MaxAttempts: 1 << 30}})),
			"MaxAttempts is negative":           parts(kind(batch.Options{Retry: holdfast.RetryPolicy{MaxAttempts: -1}})),
			"MaxCrashes is out of range":        parts(kind(batch.Options{MaxCrashes: 1 << 30})),
			"Timeout is out of range":           parts(kind(batch.Options{Timeout: 1 << 62})),
			"Timeout is negative":               parts(kind(batch.Options{Timeout: -time.Second})),
			"Cost is out of range":              parts(kind(batch.Options{Cost: 1 << 62})),
			"Cost is negative":                  parts(kind(batch.Options{Cost: -2})),
			"two safeties of a task":            parts(run.Define("d", "1", run.Task("t", task, run.Idempotent(), run.Journaled()))),
			"two timeouts of a task":            parts(run.Define("d", "1", run.Task("t", task, run.Timeout(time.Hour), run.Timeout(time.Minute)))),
			"two timeouts of an action":         parts(bill().Action("Act", acts, lifecycle.Idempotent(), lifecycle.Timeout(time.Minute), lifecycle.Timeout(time.Hour)).Validation("Check", acts).AfterEffect("Mail", acts)),
			"two policies of an after-effect":   parts(bill().Action("Act", acts, lifecycle.Idempotent()).Validation("Check", acts).AfterEffect("Mail", acts, policy, policy)),
			"two safeties of an action":         parts(bill().Action("Act", acts, lifecycle.Idempotent(), lifecycle.Opaque()).Validation("Check", acts).AfterEffect("Mail", acts)),
			"For of a task":                     parts(run.Define("d", "1", run.Task("t", task, run.For("clerk")))),
			"OnReject of a task":                parts(run.Define("d", "1", run.Task("t", task, run.OnReject("end")))),
			"Body of a task":                    parts(run.Define("d", "1", run.Task("t", task, run.Body(1)))),
			"Header of a task":                  parts(run.Define("d", "1", run.Task("t", task, run.Header("a", "b")))),
			"OnTimeout of a task":               parts(run.Define("d", "1", run.Task("t", task, run.OnTimeout("end")))),
			"WithRetry of a wait":               parts(run.Define("d", "1", run.Wait("w", time.Hour, run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 2})))),
			"Timeout of a wait":                 parts(run.Define("d", "1", run.Wait("w", time.Hour, run.Timeout(time.Hour)))),
			"Idempotent of a condition":         parts(run.Define("d", "1", run.If("i", "true", "end", "end", run.Idempotent()))),
			"Input of a call":                   parts(run.Define("d", "1", run.Call("c", "GET", "http://localhost", run.Input(1)))),
			"OnUnknownRetry of a GET":           parts(run.Define("d", "1", run.Call("c", "GET", "http://localhost", run.OnUnknownRetry()))),
			"Opaque of a transition":            parts(run.Define("d", "1", run.Fire("f", "bill", "b", "close", "admin", run.Opaque()))),
			"Timeout of an action":              parts(bill().Action("Act", acts, lifecycle.Idempotent(), lifecycle.Timeout(15*time.Minute)).Validation("Check", acts).AfterEffect("Mail", acts)),
			"Timeout of a validation":           parts(bill().Action("Act", acts, lifecycle.Idempotent()).Validation("Check", acts, lifecycle.Timeout(15*time.Minute)).AfterEffect("Mail", acts)),
			"a part is nil":                     parts(nil),
			"TTL of a scope kind":               parts(scope.Kinds(scope.Kind{Name: "k", TTL: 1 << 62})),
			"Retention below a millisecond":     parts(run.Retention(1)),
			"header Idempotency-Key":            parts(header("Idempotency-Key")),
			"header idempotency-key":            parts(header("idempotency-key")),
			"header Host":                       parts(header("host")),
			"Rate is negative":                  parts(httpapi.New(httpapi.Options{Rate: -1})),
			"ModuleJanitor without a module":    parts(lifecycle.ModuleJanitor("")),
			"ModuleJanitor without the janitor": parts(lifecycle.ModuleJanitor("m", nil)),
		},
		fault.Conflict: {
			"a lifecycle":                    parts(handled(acts, acts, acts), handled(acts, acts, acts)),
			"a handler":                      parts(handled(acts, acts, acts).Action("Act", acts)),
			"a module":                       parts(lifecycle.ModuleJanitor("m"), lifecycle.ModuleJanitor("m")),
			"a definition":                   parts(run.Define("d", "1", run.Task("t", task)), run.Define("d", "1", run.Task("t", task))),
			"a definition without functions": parts(waits(), waits()),
			"a handler of a definition":      parts(run.Handle(run.Handle(named(), "H", task), "H", task)),
			"a batch kind":                   parts(kind(batch.Options{}), kind(batch.Options{})),
			"a reaction":                     parts(stream.React("r", stream.Select{}, react, stream.Options{}), stream.React("r", stream.Select{}, react, stream.Options{})),
			"a projection":                   parts(stream.React("r", stream.Select{}, react, stream.Options{}), stream.Project("r", stream.Select{}, apply, clean, stream.Options{})),
			"the undo of a kind":             parts(batch.Define("k", item, batch.Options{}).Undo(undo).Undo(undo)),
			"the retention of a definition":  parts(run.Define("d", "1", run.Task("t", task)).Retention(time.Hour).Retention(time.Minute)),
			"run.Calls":                      parts(calls, calls),
			"run.Lease":                      parts(run.Lease(time.Minute), run.Lease(time.Minute)),
			"run.MaxWorkers":                 parts(run.MaxWorkers(1), run.MaxWorkers(1)),
			"run.Retention":                  parts(run.Retention(time.Hour), run.Retention(time.Hour)),
			"stream.Feed":                    parts(stream.Feed(stream.FeedOptions{}), stream.Feed(stream.FeedOptions{Workspaces: []string{"other"}})),
			"stream.MaxWorkers":              parts(stream.MaxWorkers(1), stream.MaxWorkers(1)),
			"lifecycle.StuckAfter":           parts(lifecycle.StuckAfter(time.Minute), lifecycle.StuckAfter(time.Minute)),
			"a scope kind":                   parts(scope.Kinds(scope.Kind{Name: "k"}, scope.Kind{Name: "k"})),
			"an artifact store":              parts(batch.Artifacts(files), batch.Artifacts(files)),
		},
	} {
		for about, all := range cases {
			hf, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{}, all...)
			if err == nil {
				_ = hf.Close()
			}
			if fault.CodeOf(err) != code {
				t.Errorf("%s: got error %v, want %q", about, err, fmt.Sprint(code))
			}
		}
	}
	if err := stream.Snooze(31 * 24 * time.Hour); fault.CodeOf(err) != fault.Validation {
		t.Errorf("snooze for 31 days: got %v, want a validation error", err)
	}
	for _, after := range []time.Duration{-time.Second, 0, time.Microsecond, 30 * 24 * time.Hour} { // a time that has passed is no mistake
		if err := stream.Snooze(after); fault.CodeOf(err) == fault.Validation {
			t.Errorf("snooze for %s: got %v", after, err)
		}
	}
}
