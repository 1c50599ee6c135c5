package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/stream"
)

// TestWorld verifies that calls to the world are counted by name, key and case, that an unknown outcome is an error
// whether or not the call arrived, that a process that has crashed calls nobody and its context ends, that own tables
// can be set up, that time passes in every case, and that a program's reactions exist in each case.
func TestWorld(t *testing.T) {
	w := new(holdfasttest.World)
	setup := func(ctx context.Context, where string) error {
		hf, err := holdfast.Open(ctx, holdfasttest.At(where), holdfast.Config{})
		if err == nil {
			_, err = stream.Append(ctx, hf, "prepared", stream.None, stream.Event{Name: "prepared"})
			err = errors.Join(err, hf.Close())
		}
		return err
	}
	told := stream.React("told", stream.Select{Pattern: "^s$"}, func(ctx context.Context, d *stream.Delivery) error {
		return w.Call(ctx, "told", d.Operation)
	}, stream.Options{})
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Setup: setup,
		Parts: func() []holdfast.Part { return []holdfast.Part{told} },
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			before := w.Count(ctx, "after a crash")
			_, err := stream.Append(ctx, hf, "s", stream.None, stream.Event{Name: "a"})
			if err == nil {
				err = w.Call(ctx, "first", "k")
			}
			holdfasttest.Advance(t, hf, time.Minute)
			crashed := err != nil && strings.Contains(err.Error(), "the engine has crashed")
			if crashed && ctx.Err() == nil {
				t.Error("the context of a crashed process has not ended")
			}
			if crashed || ctx.Err() != nil {
				if err := w.Call(ctx, "after a crash", ""); err == nil || w.Count(ctx, "after a crash") != before {
					t.Errorf("a call of a crashed process arrived: %v", err)
				}
			}
			return err
		},
		Accepts: []error{holdfast.ErrConcurrency},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			prepared, err := holdfast.Collect(stream.Read(holdfast.InWorkspace(ctx, "default"), hf, "prepared", 0))
			if n := w.Count(ctx, "first"); err != nil || len(prepared) != 1 || n > 1 || len(w.Keys(ctx, "told")) != 1 {
				err = fmt.Errorf("prepared %d, called %d times, told %v: %w", len(prepared), n, w.Keys(ctx, "told"), err)
			}
			return err
		},
	})
}

// TestWorldOverHTTP verifies that requests of a client of the world arrive at its handler, and are counted by method,
// path and key in the workspace of their context; and that a request that takes longer than its client waits has no response.
func TestWorldOverHTTP(t *testing.T) {
	w := new(holdfasttest.World)
	client := w.Client(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rw.WriteHeader(http.StatusCreated)
		fmt.Fprintf(rw, "got %s", body)
	}))
	ctx := holdfast.InWorkspace(t.Context(), "one")
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://gateway.example/charges?x=1", strings.NewReader("12"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "k1")
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "got 12" || response.StatusCode != http.StatusCreated {
		t.Errorf("got %d %q, %v", response.StatusCode, body, err)
	}
	if response.Request == nil || response.Request.URL.Path != "/charges" {
		t.Errorf("the response is to %v", response.Request)
	}
	if keys := w.Keys(ctx, "POST /charges"); len(keys) != 1 || keys[0] != "k1" || w.Count(t.Context(), "POST /charges") != 0 {
		t.Errorf("got keys %q", keys)
	}
	waiting, leave := context.WithCancel(ctx)
	slow := w.Client(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leave()
		<-r.Context().Done()
	}))
	r, err = http.NewRequestWithContext(waiting, http.MethodPost, "https://gateway.example/slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := slow.Do(r); err == nil {
		t.Errorf("got %s after the client had left", response.Status)
		response.Body.Close()
	}
	if n := w.Count(ctx, "POST /slow"); n != 1 {
		t.Errorf("%d slow requests arrived, want 1", n)
	}
}
