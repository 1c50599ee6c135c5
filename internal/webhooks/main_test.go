package webhooks_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/webhooks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

var box = boxOf(1)

func boxOf(keys ...byte) *seal.Box {
	var all [][]byte
	for _, k := range keys {
		all = append(all, bytes.Repeat([]byte{k}, seal.KeySize))
	}
	b, err := seal.New(all...)
	if err != nil {
		panic(err)
	}
	return b
}

var plain = webhooks.CreateArgs{URL: "https://example.com/", Secret: signer("s1"), By: "ann"}

// signer returns a secret with a name, and named the names of secrets.
func signer(name string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%-24s", name))
}

func named(secrets []string) (names []string) {
	for _, s := range secrets {
		raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "whsec_"))
		names = append(names, strings.TrimSpace(string(raw)))
	}
	return names
}

func create(t *testing.T, hf *holdfast.Engine) webhooks.Webhook {
	t.Helper()
	w, err := webhooks.Create(t.Context(), engine.Of(hf), box, plain)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func secrets(t *testing.T, hf *holdfast.Engine, id string) string {
	t.Helper()
	to, err := webhooks.Find(t.Context(), engine.Of(hf), box, id)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(named(to.Signing))
}

// TestCrash verifies that a webhook is created, rotated and removed once, wherever a
// fault strikes: never without its reaction, never a reaction without its webhook, and
// never without its event.
func TestCrash(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{Do: createRotateRemove, Check: checkHistory})
}

// createRotateRemove creates two webhooks, rotates the first and removes the second. Every step
// checks the current state, so that it may be repeated from the beginning.
func createRotateRemove(ctx context.Context, hf *holdfast.Engine) error {
	made, err := events.Read(ctx, engine.Of(hf), events.ReadArgs{Stream: "made"})
	if err != nil {
		return err
	}
	for len(made) < 2 { // its id is recorded with it
		err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			w, err := webhooks.Create(ctx, store.DoerOf(tx), box, plain)
			if err != nil {
				return err
			}
			_, err = events.Append(ctx, store.DoerOf(tx), events.AppendArgs{Stream: "made", ExpectVersion: new(int64(len(made)) - 1), Events: []events.Event{{Name: w.ID}}})
			return err
		})
		if err != nil && fault.CodeOf(err) != fault.Concurrency {
			return err
		}
		if made, err = events.Read(ctx, engine.Of(hf), events.ReadArgs{Stream: "made"}); err != nil {
			return err
		}
	}
	if w, err := webhooks.Get(ctx, engine.Of(hf), made[0].Name); err != nil {
		return err
	} else if w.RotatedAt == nil {
		if w, err = webhooks.Rotate(ctx, engine.Of(hf), box, w.ID, signer("s2"), time.Hour, "bob"); err != nil {
			return err
		} else if w.URL != plain.URL || w.OverlapUntil == nil {
			return fmt.Errorf("rotation returned webhook %+v", w)
		}
	}
	if err := webhooks.Remove(ctx, engine.Of(hf), made[1].Name, "cleo"); fault.CodeOf(err) != fault.NotFound {
		return err
	}
	return nil
}

func checkHistory(ctx context.Context, hf *holdfast.Engine) error {
	made, err := events.Read(ctx, engine.Of(hf), events.ReadArgs{Stream: "made"})
	if err != nil {
		return err
	}
	got := ""
	for _, m := range made {
		recorded, err := events.Read(ctx, engine.Of(hf), events.ReadArgs{Stream: webhooks.Stream(m.Name)})
		if err != nil {
			return err
		}
		for _, e := range recorded {
			got += fmt.Sprintf("%d %s by %s, ", e.Version, e.Name, e.Actor)
		}
		_, failed := reactions.Get(ctx, engine.Of(hf), webhooks.Reaction(m.Name))
		to, gone := webhooks.Find(ctx, engine.Of(hf), box, m.Name)
		got += fmt.Sprintf("%v %v %v; ", failed == nil, gone == nil, named(to.Signing))
	}
	if want := "0 created by ann, 1 rotated by bob, true true [s2 s1]; 0 created by ann, 1 removed by cleo, false false []; "; got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	all, err := webhooks.All(ctx, engine.Of(hf))
	all = slices.DeleteFunc(all, func(x webhooks.Served) bool { return x.Workspace != store.WorkspaceOf(ctx) })
	if err != nil || len(all) != 1 || all[0].ID != made[0].Name {
		return fmt.Errorf("got webhooks %+v, %w", all, err)
	}
	return nil
}

// TestOfThoseWhoRotateOneWins verifies that of several concurrent rotations those that
// succeed do so one after the other, and those that fail change nothing: the secret in
// force is that of the last success.
func TestOfThoseWhoRotateOneWins(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		w := create(t, hf)
		won, lost := holdfasttest.Race(t, 8, func(i int) error {
			_, err := webhooks.Rotate(t.Context(), engine.Of(hf), box, w.ID, fmt.Sprint("r", i), 0, "bob")
			return err
		})
		for _, err := range lost {
			if fault.CodeOf(err) != fault.Conflict {
				t.Error(err)
			}
		}
		recorded, err := events.Read(t.Context(), engine.Of(hf), events.ReadArgs{Stream: webhooks.Stream(w.ID)})
		if err != nil || won < 1 || len(recorded) != won+1 {
			t.Errorf("%d calls succeeded, but the history has %d events, error %v", won, len(recorded), err)
		}
	})
}

func TestASecretBelongsToItsWebhook(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		w := create(t, hf)
		if got := secrets(t, hf, w.ID); got != "[s1]" {
			t.Errorf("got secrets %s, want s1", got)
		}
		if _, err := webhooks.Find(t.Context(), engine.Of(hf), boxOf(2), w.ID); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("Find with another key returned %v, want UNAVAILABLE", err)
		}
		if _, err := webhooks.Find(t.Context(), engine.Of(hf), boxOf(2, 1), w.ID); err != nil {
			t.Errorf("Find with another key first returned %v", err)
		}
		for _, step := range []struct {
			secret  string
			overlap time.Duration
			after   time.Duration
			want    string
		}{
			{"s2", time.Minute, 0, "[s2 s1]"},
			{"s3", time.Minute, 0, "[s3 s2]"},
			{"s4", time.Minute, 2 * time.Minute, "[s4]"},
			{"s5", 0, 0, "[s5]"},
		} {
			if _, err := webhooks.Rotate(t.Context(), engine.Of(hf), box, w.ID, signer(step.secret), step.overlap, "bob"); err != nil {
				t.Fatal(err)
			}
			holdfasttest.Advance(t, hf, step.after)
			if got := secrets(t, hf, w.ID); got != step.want {
				t.Errorf("got secrets %s, want %s", got, step.want)
			}
		}
		if err := webhooks.Remove(t.Context(), engine.Of(hf), w.ID, "cleo"); err != nil {
			t.Fatal(err)
		}
		if _, err := webhooks.Find(t.Context(), engine.Of(hf), box, w.ID); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("Find of a deleted webhook returned %v, want NOT_FOUND", err)
		}
	})
}

func TestTold(t *testing.T) {
	for stream, want := range map[string]bool{
		reactions.Stream(webhooks.Reaction("x"), "s"): true,
		reactions.Stream("$after:a:b", "s"):           false,
		reactions.Stream("r", "s"):                    false,
		webhooks.Stream("x"):                          false,
		"s":                                           false,
	} {
		if webhooks.Reported(stream) != want {
			t.Errorf("%s: got %v", stream, !want)
		}
	}
}
