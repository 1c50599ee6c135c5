package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/wire"
)

func TestAScopeFromAfar(t *testing.T) {
	s := serve(t, httpapi.Options{NoKeys: true})
	c := dial(t, s.url, Options{})
	ctx := t.Context()
	const kind, id = "cart ü", "a/../?#%"
	is := func(x wire.ChangedScope, err error, version int64, changed bool, state string) {
		t.Helper()
		if err != nil || x.Version != version || x.Changed != changed || !strictjson.Equal(x.State, []byte(state)) {
			t.Fatalf("got %d %v %s, %v, want %d %v %s", x.Version, x.Changed, x.State, err, version, changed, state)
		}
	}
	_, err := c.GetScope(ctx, kind, id)
	if !errors.Is(err, fault.Of(fault.NotFound)) {
		t.Errorf("get of a missing scope: got %v, want NOT_FOUND", err)
	}
	x, err := c.PatchScope(ctx, kind, id, []byte(`{"n":9007199254740993}`), Absent())
	is(x, err, 0, true, `{"n":9007199254740993}`)
	_, err = c.PatchScope(ctx, kind, id, []byte(`{}`), Absent())
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.PreconditionFailed || f.Fields["lastVersion"] != 0.0 {
		t.Errorf("second create: got %v, want PRECONDITION_FAILED with lastVersion 0", err)
	}
	x, err = c.IncScope(ctx, kind, id, wire.IncScope{Field: "n"}, ExpectVersion(0))
	is(x, err, 1, true, `{"n":9007199254740994}`)
	if _, err = c.IncScope(ctx, kind, id, wire.IncScope{Field: "n"}, ExpectVersion(0)); !errors.Is(err, fault.Of(fault.PreconditionFailed)) || !errors.Is(err, fault.Of(fault.Concurrency)) {
		t.Errorf("change of an old version: got %v, want PRECONDITION_FAILED, which is also a CONCURRENCY_ERROR", err)
	}
	by := int64(-9007199254740994)
	x, err = c.IncScope(ctx, kind, id, wire.IncScope{Field: "n", By: &by}, Present())
	is(x, err, 2, true, `{"n":0}`)
	if _, err = c.IncScope(ctx, kind, "none", wire.IncScope{Field: "n"}, Present()); !errors.Is(err, fault.Of(fault.PreconditionFailed)) {
		t.Errorf("change of a missing scope: got %v, want PRECONDITION_FAILED, which is also a CONCURRENCY_ERROR", err)
	}
	x, err = c.PatchScope(ctx, kind, id, []byte(`{"n":null}`))
	is(x, err, 3, true, `{}`)
	x, err = c.PushScope(ctx, kind, id, wire.PushScope{Field: "l", Value: []byte("null")})
	is(x, err, 4, true, `{"l":[null]}`)
	if _, err = c.PushScope(ctx, kind, id, wire.PushScope{Field: "l"}); !errors.Is(err, fault.Of(fault.Validation)) {
		t.Errorf("push of nothing: got %v, want a validation error", err)
	}
	x, err = c.SetScopeRecord(ctx, kind, id, "r/s", "..", nil)
	is(x, err, 5, true, `{"l":[null],"r/s":{"..":null}}`)
	x, err = c.DeleteScopeRecord(ctx, kind, id, "r/s", "..")
	is(x, err, 6, true, `{"l":[null],"r/s":{}}`)

	got, err := c.GetScope(ctx, kind, id, IfNoneMatch(5))
	if err != nil || got.Kind != kind || got.ID != id || got.Version != 6 || !strictjson.Equal(got.State, []byte(`{"l":[null],"r/s":{}}`)) {
		t.Errorf("got %+v, %v", got, err)
	}
	before := s.requests.Load()
	if _, err = c.GetScope(ctx, kind, id, IfNoneMatch(6)); !errors.Is(err, ErrNotModified) || s.requests.Load() != before+1 {
		t.Errorf("get of an unmodified scope: got %v after %d requests, want ErrNotModified after 1", err, s.requests.Load()-before)
	}
	if errors.Is(err, fault.Of(fault.Concurrency)) {
		t.Errorf("get of an unmodified scope: %v is a CONCURRENCY_ERROR, want none", err)
	}
	x, err = c.DeleteScope(ctx, kind, id, ExpectVersion(6))
	is(x, err, 7, true, "null")
	x, err = c.DeleteScope(ctx, kind, id)
	is(x, err, -1, false, "null")
}

// TestConditionsOfOtherCalls verifies that the client sends no call with a condition that its route
// does not read.
func TestConditionsOfOtherCalls(t *testing.T) {
	s := serve(t, httpapi.Options{NoKeys: true})
	c := dial(t, s.url, Options{})
	ctx := t.Context()
	for what, call := range map[string]func(Option) error{
		"CancelRun":      func(o Option) error { _, err := c.CancelRun(ctx, "r", wire.Command{}, o); return err },
		"FireStep":       func(o Option) error { _, err := c.FireStep(ctx, "l", "e", "s", wire.Fire{}, o); return err },
		"DeleteReaction": func(o Option) error { return c.DeleteReaction(ctx, "r", o) },
		"GetRun":         func(o Option) error { _, err := c.GetRun(ctx, "r", o); return err },
		"AppendEvents":   func(o Option) error { _, err := c.AppendEvents(ctx, "s", wire.Append{}, o); return err },
	} {
		for name, o := range map[string]Option{"ExpectVersion": ExpectVersion(3), "Present": Present(), "Absent": Absent(), "IfNoneMatch": IfNoneMatch(3), "DryRun": DryRun()} {
			if err := call(o); fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), name) {
				t.Errorf("%s with %s: got %v, want a validation error that names the option", what, name, err)
			}
		}
	}
	if _, err := c.GetScope(ctx, "cart", "c", Absent()); fault.CodeOf(err) != fault.Validation {
		t.Errorf("GetScope with Absent: got %v, want a validation error", err)
	}
	if _, err := c.PatchScope(ctx, "cart", "c", []byte(`{}`), IfNoneMatch(3)); fault.CodeOf(err) != fault.Validation {
		t.Errorf("PatchScope with IfNoneMatch: got %v, want a validation error", err)
	}
	if n := s.requests.Load(); n != 0 {
		t.Errorf("sent %d requests, want 0", n)
	}
}

// TestALostAnswerOfAChange verifies that each change under a key takes effect once, although
// responses are lost after the server has worked.
func TestALostAnswerOfAChange(t *testing.T) {
	s := serve(t, httpapi.Options{NoKeys: true})
	c := dial(t, s.url, Options{})
	ctx := t.Context()
	for i := range int64(6) {
		s.line.loses(2, i%2 == 0)
		x, err := c.IncScope(ctx, "cart", "c", wire.IncScope{Field: "n"}, Key(fmt.Sprint("k", i)))
		if err != nil || x.Version != i || string(x.State) != fmt.Sprintf(`{"n":%d}`, i+1) {
			t.Fatalf("change %d: got %d %s, %v", i, x.Version, x.State, err)
		}
	}
	s.line.loses(1, false)
	before := s.requests.Load()
	if _, err := c.IncScope(ctx, "cart", "c", wire.IncScope{Field: "n"}); fault.CodeOf(err) != fault.OutcomeUnknown || s.requests.Load() != before+1 {
		t.Errorf("without a key: got %v after %d requests, want OUTCOME_UNKNOWN after 1", err, s.requests.Load()-before)
	}
	got, err := c.GetScope(ctx, "cart", "c")
	if err != nil || string(got.State) != `{"n":7}` {
		t.Errorf("got state %s, %v, want n 7", got.State, err)
	}
}

// TestWatchScopeOverBrokenLines verifies that a scope watched over connections that break
// repeatedly is yielded in the order of its versions, without repetitions, and with the last one in
// any case.
func TestWatchScopeOverBrokenLines(t *testing.T) {
	s := serve(t, httpapi.Options{NoKeys: true})
	c := dial(t, s.url, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const all = 30
	next := int64(-1)
	for x, err := range c.WatchScope(ctx, "cart", "c") {
		if err != nil {
			t.Fatal(err)
		}
		if x.Version != next || x.Kind != "cart" || x.ID != "c" {
			t.Fatalf("got %+v, want version %d", x, next)
		}
		if next == all {
			break
		}
		if next++; next%3 == 0 {
			// The message is lost, completely or in part; the change was made before.
			s.line.loses(2, next%2 == 0)
		}
		if _, err := c.IncScope(ctx, "cart", "c", wire.IncScope{Field: "n"}, Key(fmt.Sprint(next))); err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	for x, err := range c.WatchScope(ctx, "cart", "c") {
		if told++; err != nil {
			t.Fatal(err)
		}
		if told == 1 {
			if _, err := c.DeleteScope(ctx, "cart", "c"); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if x.Version != -1 || string(x.State) != "null" {
			t.Errorf("got %+v, want version -1 and null", x)
		}
		break
	}
	for _, err := range c.WatchScope(ctx, "a/b", "c") {
		if fault.CodeOf(err) != fault.Validation {
			t.Errorf("kind with a slash: got %v, want a validation error", err)
		}
	}
	cancel()
	for _, err := range c.WatchScope(ctx, "cart", "c") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v, want context.Canceled", err)
		}
	}
}

// TestWatchScopeGoesOn verifies that a new connection continues after the last yielded state,
// without repeating it.
func TestWatchScopeGoesOn(t *testing.T) {
	state := func(version int64) string {
		return fmt.Sprintf("id: %d\nevent: state\ndata: {\"kind\":\"k\",\"id\":\"i\",\"version\":%d,\"state\":{}}\n\n", version, version)
	}
	lines := []*http.Response{feed(state(-1) + state(4)), feed(""), feed(state(4) + state(5) + "id: 6\nevent: st"), feed(state(7)), problem(fault.Auth)}
	synctest.Test(t, func(t *testing.T) {
		var requests, got []string
		c := dial(t, "http://holdfast.invalid", Options{HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			requests = append(requests, r.Header.Get("Last-Event-ID"))
			return lines[len(requests)-1], nil
		})}})
		var ended error
		for x, err := range c.WatchScope(t.Context(), "k", "i") {
			if ended = err; err == nil {
				got = append(got, fmt.Sprint(x.Version))
			}
		}
		if strings.Join(got, " ") != "-1 4 5 7" || fault.CodeOf(ended) != fault.Auth {
			t.Errorf("got versions %q and %v", got, ended)
		}
		if want := " 4 4 5 7"; strings.Join(requests, " ") != want {
			t.Errorf("requested versions after %q, want %q", requests, want)
		}
	})
}
