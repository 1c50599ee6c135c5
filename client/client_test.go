package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/wire"
)

func TestAnEntityFromAfar(t *testing.T) {
	s := serve(t, httpapi.Options{NoKeys: true})
	c := dial(t, s.url, Options{})
	ctx := t.Context()
	const id = "a/../ü?#%"
	var raw json.RawMessage
	e, err := c.CreateEntity(ctx, "invoice", wire.NewEntity{ID: new(id), Data: []byte(`{"cents":9007199254740993}`)}, Raw(&raw))
	if err != nil || e.ID != id || string(e.Data) != `{"cents":9007199254740993}` || !strings.Contains(string(raw), `"status":"open"`) {
		t.Fatalf("created %+v, %v, %s", e, err, raw)
	}
	_, err = c.CreateEntity(ctx, "invoice", wire.NewEntity{ID: new(id)})
	if !errors.Is(err, fault.Of(fault.Conflict)) {
		t.Errorf("second create: got %v, want CONFLICT", err)
	}
	claimed, err := c.ClaimStep(ctx, "invoice", id, wire.NewClaim{StepKey: "close", Requester: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.FireStep(ctx, "invoice", id, "close", wire.Fire{Requester: "admin"})
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.ClaimFailed || f.Fields["holder"] == nil || f.Fields["requestId"] == "" {
		t.Errorf("losing caller got %+v, want CLAIM_FAILED with holder and requestId", err)
	}
	for x, err := range c.ListClaims(ctx, ClaimFilter{Phase: "held"}) {
		if err != nil || x.Entity != id || x.StepKey != "close" {
			t.Errorf("listed %+v, %v", x, err)
		}
	}
	done, err := c.SettleClaim(ctx, claimed.Claim.Token, wire.Settle{Outcome: "success"})
	if err != nil || done.Entity.Status != "closed" {
		t.Errorf("settled %+v, %v", done, err)
	}
	var names []string
	for x, err := range c.ReadEntityHistory(ctx, "invoice", id) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, x.Name)
	}
	if len(names) != 3 {
		t.Errorf("got history %q, want 3 events", names)
	}
	refused, err := holdfast.Collect(c.ListRefusals(ctx, "invoice", id))
	if err != nil || len(refused) != 2 || refused[0].Code != fault.ClaimFailed || refused[1].StepKey != "create" {
		t.Errorf("got refusals %+v, %v, want a CLAIM_FAILED and the refused create", refused, err)
	}
}

// TestAListIsReadToItsEnd verifies that a list is read to its end, over as many pages as it takes,
// and that a break ends it.
func TestAListIsReadToItsEnd(t *testing.T) {
	s := serve(t, httpapi.Options{NoKeys: true})
	c := dial(t, s.url, Options{})
	var in wire.Append
	for i := range 250 {
		in.Events = append(in.Events, wire.NewEvent{Name: fmt.Sprint("e", i)})
	}
	if _, err := c.AppendEvents(t.Context(), "s", in); err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	for e, err := range c.ReadStream(t.Context(), "s", StreamRange{}) {
		if err != nil || e.Version != want {
			t.Fatalf("read %+v, %v, want version %d", e, err, want)
		}
		want++
	}
	if want != 250 {
		t.Errorf("read %d events, want 250", want)
	}
	from := int64(149)
	for e, err := range c.ReadStream(t.Context(), "s", StreamRange{From: &from, Backward: true}) {
		if err != nil || e.Version != from {
			t.Fatalf("read %+v, %v, want version %d", e, err, from)
		}
		if from--; from == 20 {
			break
		}
	}
	p, err := c.ReadStreamPage(t.Context(), "s", StreamRange{}, Page{Limit: 7})
	if err != nil || len(p.Items) != 7 || p.Next == nil {
		t.Errorf("got page %+v, %v, want 7 items and a next page", p, err)
	}
	for _, err := range c.ListEntities(t.Context(), "nothing", EntityFilter{}) {
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("list of an unknown lifecycle: got %v, want NOT_FOUND", err)
		}
	}
}

// TestKeys verifies that a server with keys refuses calls without one, and permits what the role of
// a key permits.
func TestKeys(t *testing.T) {
	s := serve(t, httpapi.Options{})
	if _, err := dial(t, s.url, Options{}).GetEntity(t.Context(), "invoice", "i1"); !errors.Is(err, fault.Of(fault.Auth)) {
		t.Errorf("caller without a key got %v, want an auth error", err)
	}
	open := dial(t, serveBeside(t, s).URL, Options{})
	reader, err := open.CreateKey(t.Context(), wire.NewKey{Role: "read"})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, s.url, Options{APIKey: reader.Secret})
	if _, err := c.GetEntity(t.Context(), "invoice", "i1"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("reader got %v, want NOT_FOUND", err)
	}
	if _, err := c.CreateEntity(t.Context(), "invoice", wire.NewEntity{}); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("reader that writes got %v, want FORBIDDEN", err)
	}
	next, err := open.RotateKey(t.Context(), reader.ID, wire.RotateKey{})
	if err != nil || next.Secret == "" || next.Secret == reader.Secret {
		t.Errorf("rotated to %+v, %v", next, err)
	}
	if gone, err := open.RevokeKey(t.Context(), next.ID); err != nil || gone.RevokedAt == nil {
		t.Errorf("revoked %+v, %v", gone, err)
	}
	n := 0
	for _, err := range open.ListKeys(t.Context()) {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 2 {
		t.Errorf("got %d keys, want 2", n)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:7070", "ftp://x", "http://", "http://a:b@c", "http://a?b", "http://a#b", "http://a\x7f"} {
		if _, err := New(url, Options{}); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := New("http://a", Options{APIKey: "a\r\nb"}); fault.CodeOf(err) != fault.Validation {
		t.Error("a key with a line break is accepted")
	}
	c := dial(t, "http://127.0.0.1:1/below/", Options{MaxAttempts: 1})
	if c.base != "http://127.0.0.1:1/below/api/v1" {
		t.Errorf("got base %q", c.base)
	}
	if _, err := c.GetKey(t.Context(), ""); fault.CodeOf(err) != fault.Validation {
		t.Errorf("empty id: got %v, want a validation error", err)
	}
	_, err := c.GetKey(context.Background(), "x")
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != fault.Unavailable || f.Unwrap() == nil {
		t.Errorf("unreachable server: got %v, want UNAVAILABLE", err)
	}
}
