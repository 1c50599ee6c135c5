package storetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// Verifies that commands on runs and batches record the actor with the event that they
// write, that other events have none, and that an actor that cannot be stored is refused before anything is written.
func TestCommandsRecordTheirActor(t *testing.T) {
	wait := run.Define("wait", "1", run.Wait("a", time.Hour))
	nop := batch.Define("nop", func(context.Context, *batch.Item[int]) (int, error) { return 0, nil }, batch.Options{})
	OnBoth(t, func(t *testing.T, db string) {
		ctx := t.Context()
		hf, err := holdfast.Open(ctx, holdfasttest.At(db), holdfast.Config{}, wait, nop)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hf.Close() })
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		actors := func(name string) map[string]string {
			t.Helper()
			found := make(map[string]string)
			for e, err := range stream.Read(ctx, hf, name, 0) {
				ok(err)
				found[e.Name] = e.Actor
			}
			return found
		}
		want := func(name string, all map[string]string) {
			t.Helper()
			found := actors(name)
			for event, actor := range all {
				if got, there := found[event]; !there || got != actor {
					t.Errorf("%s: event %s has the actor %q (%v), want %q", name, event, got, there, actor)
				}
			}
		}

		r, _, err := wait.Start(ctx, hf, struct{}{})
		ok(err)
		if _, err := run.Cancel(ctx, hf, r.ID, run.By("a\x00b")); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("an actor that cannot be stored: got %v, want ErrValidation", err)
		}
		ok(run.Send(ctx, hf, r.ID, "news", 1, run.By("sam")))
		_, err = run.Cancel(ctx, hf, r.ID, run.By("ann"))
		ok(err)
		want("$run/"+r.ID, map[string]string{"created": "", "signalled": "sam", "cancelled": "ann"})

		_, err = batch.PutWallet(ctx, hf, "w")
		ok(err)
		_, err = nop.Create(ctx, hf, "w", slices.Values([]batch.NewItem[int]{{Key: "1", Cost: 5}}), batch.ID("b"), batch.LeaveOpen())
		ok(err)
		_, err = batch.Seal(ctx, hf, "b", batch.By("sam"))
		ok(err)
		_, err = batch.Cancel(ctx, hf, "b", batch.By("ann"))
		ok(err)
		want("$batch/b", map[string]string{"created": "", "sealed": "sam", "cancelled": "ann"}) // the wallet is empty: no item begins
	})
}
