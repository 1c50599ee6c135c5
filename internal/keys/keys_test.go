package keys_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/store"
)

// TestAKeyIsMadeAndKnown verifies that a new key is returned by Get and List and recognized by a
// ring, in its workspace.
func TestAKeyIsMadeAndKnown(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := holdfast.InWorkspace(t.Context(), "acme")
		k, text, err := keys.Create(ctx, engine.Of(hf), plain)
		if err != nil {
			t.Fatal(err)
		}
		if k.Workspace != "acme" || k.Name != "ci" || k.Role != keys.Operate || !slices.Equal(k.Requesters, plain.Requesters) ||
			k.Rate != 7 || k.CreatedBy != "ann" || k.CreatedAt.IsZero() || k.ExpiresAt != nil || k.RevokedAt != nil {
			t.Errorf("created API key %+v", k)
		}
		if !strings.HasPrefix(text, "hf_"+k.ID+"_") || len(text) != len("hf_")+len(k.ID)+1+52 {
			t.Errorf("secret %q does not belong to API key %s", text, k.ID)
		}
		ring, _ := newRing(hf)
		for range 2 { // from the database, then from the cache
			got := accepted(t, ring, text)
			same(t, "verified", got, k)
			got.Requesters[0] = "changed by a caller"
		}
		same(t, "verified again", accepted(t, ring, text), k)
		got, err := keys.Get(ctx, engine.Of(hf), k.ID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "got", got, k)
		silent, _, err := keys.Create(ctx, engine.Of(hf), keys.CreateArgs{Name: "silent", Role: keys.Read, Lifetime: time.Microsecond, By: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if silent.Speaks("admin") || silent.ExpiresAt == nil || !silent.ExpiresAt.Equal(silent.CreatedAt.Add(time.Millisecond)) {
			t.Errorf("created API key %+v", silent)
		}
		all, err := keys.List(ctx, engine.Of(hf), "", 0)
		if err != nil || len(all) != 2 {
			t.Fatalf("got list %v, error %v, want 2 API keys", all, err)
		}
		same(t, "listed", all[0], k)
		same(t, "listed", all[1], silent)
		rest, err := keys.List(ctx, engine.Of(hf), k.ID, 1)
		if err != nil || len(rest) != 1 || rest[0].ID != silent.ID {
			t.Errorf("second page has %v, error %v", rest, err)
		}
	})
}

func TestSpeaks(t *testing.T) {
	for _, c := range []struct {
		requesters []string
		requester  string
		want       bool
	}{
		{nil, "admin", false},
		{[]string{"admin"}, "admin", true},
		{[]string{"admin"}, "Admin", false},
		{[]string{"admin"}, "", false},
		{[]string{"system", "*"}, "admin", true},
	} {
		if got := (keys.Key{Requesters: c.requesters}).Speaks(c.requester); got != c.want {
			t.Errorf("API key for %q may act as %q: got %v", c.requesters, c.requester, got)
		}
	}
}

// TestHistory verifies that each change writes one event with its actor, and that a rolled back
// change writes none.
func TestHistory(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		a := plain
		a.Lifetime = time.Hour
		old, _ := create(t, hf, a)
		undo := errors.New("undo")
		err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			if _, _, err := keys.Rotate(ctx, store.DoerOf(tx), old.ID, 0, "cleo"); err != nil {
				return err
			}
			_, err := keys.Revoke(ctx, store.DoerOf(tx), old.ID, "cleo")
			return errors.Join(err, undo)
		})
		if !errors.Is(err, undo) || errors.Is(err, fault.Of(fault.Conflict)) {
			t.Fatal(err)
		}
		k, _, err := keys.Rotate(t.Context(), engine.Of(hf), old.ID, time.Minute, "bob")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := keys.Revoke(t.Context(), engine.Of(hf), old.ID, "dan"); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := names(t, hf, old.ID), "0 created by ann, 1 rotated by bob, 2 revoked by dan"; got != want {
			t.Errorf("history of the old API key is %q, want %q", got, want)
		}
		if got, want := names(t, hf, k.ID), "0 created by bob"; got != want {
			t.Errorf("history of the new API key is %q, want %q", got, want)
		}
		now, err := keys.Get(t.Context(), engine.Of(hf), old.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantHistory(t, hf, old, map[string]any{"successor": k.ID}, []time.Time{*old.ExpiresAt, *now.ExpiresAt, *now.ExpiresAt})
		wantHistory(t, hf, k, map[string]any{"predecessor": old.ID}, []time.Time{*k.ExpiresAt})
	})
}

// wantHistory checks the data of a key's events: its rights, its expiry, and its predecessor or
// successor.
func wantHistory(t *testing.T, hf *holdfast.Engine, k keys.Key, other map[string]any, expires []time.Time) {
	t.Helper()
	others := 0
	for i, e := range history(t, hf, k.ID) {
		var d struct {
			Name, Role string
			Requesters []string
			ExpiresAt  time.Time
		}
		var all map[string]any
		if err := errors.Join(json.Unmarshal(e.Data, &d), json.Unmarshal(e.Data, &all)); err != nil {
			t.Fatalf("%s: %v", e.Data, err)
		}
		if d.Name != k.Name || d.Role != string(k.Role) || !slices.Equal(d.Requesters, k.Requesters) ||
			!d.ExpiresAt.Equal(expires[i].Truncate(time.Millisecond)) {
			t.Errorf("event %s has data %s", e.Name, e.Data)
		}
		for name, value := range other {
			if all[name] == value {
				others++
			}
		}
	}
	if others != len(other) {
		t.Errorf("history of %s does not contain %v", k.ID, other)
	}
}

// TestRevoke verifies that a key is revoked once, that revoking it again returns the same, also
// concurrently.
func TestRevoke(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		k, text := create(t, hf, plain)
		got := make([]keys.Key, 8)
		if _, lost := holdfasttest.Race(t, len(got), func(i int) (err error) {
			got[i], err = keys.Revoke(t.Context(), engine.Of(hf), k.ID, "bob")
			return err
		}); len(lost) > 0 {
			t.Fatal(lost[0])
		}
		want := k
		want.RevokedAt = got[0].RevokedAt
		if want.RevokedAt == nil {
			t.Fatalf("revocation returned %+v, want revokedAt", got[0])
		}
		holdfasttest.Advance(t, hf, time.Hour)
		again, err := keys.Revoke(t.Context(), engine.Of(hf), k.ID, "bob")
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range append(got, again) {
			same(t, "revoked", g, want)
		}
		if got, want := names(t, hf, k.ID), "0 created by ann, 1 revoked by bob"; got != want {
			t.Errorf("history is %q, want %q", got, want)
		}
		ring, _ := newRing(hf)
		refused(t, ring, text, "revoked")
	})
}

// TestRotate verifies that the new key has the rights and the lifetime of the old one, that the old
// one is valid for the overlap and no longer, and which keys cannot be rotated.
func TestRotate(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		a := plain
		a.Lifetime = 48 * time.Hour
		old, oldText := create(t, hf, a)
		holdfasttest.Advance(t, hf, 10*time.Hour)
		k, text, err := keys.Rotate(t.Context(), engine.Of(hf), old.ID, time.Hour, "bob")
		if err != nil {
			t.Fatal(err)
		}
		want := old
		want.ID, want.CreatedBy, want.CreatedAt = k.ID, "bob", k.CreatedAt
		want.ExpiresAt = new(k.CreatedAt.Add(48 * time.Hour))
		if k.ID == old.ID {
			t.Error("the new API key has the id of the old one")
		}
		same(t, "rotated", k, want)
		rotatedAgain := func(id, part string) {
			t.Helper()
			_, text, err := keys.Rotate(t.Context(), engine.Of(hf), id, time.Hour, "bob")
			hasCode(t, err, fault.Conflict)
			if err == nil || text != "" || !strings.Contains(err.Error(), part) {
				t.Errorf("got error %v, want it to contain %q", err, part)
			}
		}
		rotatedAgain(old.ID, k.ID)
		holdfasttest.Advance(t, hf, 50*time.Minute)
		ring, _ := newRing(hf)
		accepted(t, ring, oldText)
		accepted(t, ring, text)
		holdfasttest.Advance(t, hf, 11*time.Minute)
		ring, _ = newRing(hf)
		refused(t, ring, oldText, "rotated, after the overlap")
		accepted(t, ring, text)

		next, nextText, err := keys.Rotate(t.Context(), engine.Of(hf), k.ID, 0, "bob")
		if err != nil {
			t.Fatal(err)
		}
		ring, _ = newRing(hf)
		refused(t, ring, text, "rotated without an overlap")
		accepted(t, ring, nextText)
		holdfasttest.Advance(t, hf, 49*time.Hour)
		rotatedAgain(next.ID, "expired")
		endless, _ := create(t, hf, plain)
		if _, err := keys.Revoke(t.Context(), engine.Of(hf), endless.ID, "bob"); err != nil {
			t.Fatal(err)
		}
		rotatedAgain(endless.ID, "revoked")
	})
}

// TestTheOverlapDoesNotProlongAKey verifies that a rotated key expires at its own expiry, if that
// is earlier than the overlap.
func TestTheOverlapDoesNotProlongAKey(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		a := plain
		a.Lifetime = time.Hour
		old, _ := create(t, hf, a)
		if _, _, err := keys.Rotate(t.Context(), engine.Of(hf), old.ID, 48*time.Hour, "bob"); err != nil {
			t.Fatal(err)
		}
		now, err := keys.Get(t.Context(), engine.Of(hf), old.ID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "rotated", now, old)
	})
}

// TestOfManyWhoRotateOneWins verifies that concurrent rotations create one new key, with and
// without their own transactions, and for any overlap.
func TestOfManyWhoRotateOneWins(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for _, overlap := range []time.Duration{0, time.Hour} {
			old, _ := create(t, hf, plain)
			before, err := keys.List(t.Context(), engine.Of(hf), "", 0)
			if err != nil {
				t.Fatal(err)
			}
			texts := make([]string, 12)
			won, lost := holdfasttest.Race(t, len(texts), func(i int) error {
				rotate := func(ctx context.Context, d holdfast.Doer) (err error) {
					_, texts[i], err = keys.Rotate(ctx, store.DoerOf(d), old.ID, overlap, "bob")
					return err
				}
				if i%2 == 0 {
					return rotate(t.Context(), hf)
				}
				return hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error { return rotate(ctx, tx) })
			})
			if won != 1 {
				t.Errorf("%d callers succeeded, want 1", won)
			}
			for _, err := range lost {
				hasCode(t, err, fault.Conflict)
			}
			after, err := keys.List(t.Context(), engine.Of(hf), "", 0)
			if err != nil || len(after) != len(before)+1 {
				t.Errorf("%d API keys before, %d after, want one more: %v", len(before), len(after), err)
			}
			ring, _ := newRing(hf)
			for _, text := range texts {
				if text != "" {
					accepted(t, ring, text)
				}
			}
		}
	})
}

// TestARevocationAndARotationExcludeEachOther verifies that, in either order, the old key is
// invalid afterwards, and that its history has no gap.
func TestARevocationAndARotationExcludeEachOther(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for range 8 {
			old, text := create(t, hf, plain)
			_, lost := holdfasttest.Race(t, 2, func(i int) error {
				if i == 0 {
					_, err := keys.Revoke(t.Context(), engine.Of(hf), old.ID, "bob")
					return err
				}
				_, _, err := keys.Rotate(t.Context(), engine.Of(hf), old.ID, time.Hour, "bob")
				return err
			})
			want := "0 created by ann, 1 rotated by bob, 2 revoked by bob"
			if len(lost) > 0 {
				hasCode(t, lost[0], fault.Conflict)
				want = "0 created by ann, 1 revoked by bob"
			}
			if got := names(t, hf, old.ID); len(lost) > 1 || got != want {
				t.Errorf("history is %q, want %q; refused: %v", got, want, lost)
			}
			ring, _ := newRing(hf)
			refused(t, ring, text, "revoked")
		}
	})
}

// TestAnotherWorkspacesKeyIsUnknown verifies that an id of another workspace is answered like one
// that does not exist, by every verb, and that the key does not change.
func TestAnotherWorkspacesKeyIsUnknown(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		k, text := create(t, hf, plain)
		elsewhere := holdfast.InWorkspace(t.Context(), "elsewhere")
		mine, _, err := keys.Create(elsewhere, engine.Of(hf), plain)
		if err != nil {
			t.Fatal(err)
		}
		for what, id := range map[string]string{"foreign": k.ID, "unknown": keys.NewText()[3:29], "malformed": "x\x00", "empty": ""} {
			_, err := keys.Get(elsewhere, engine.Of(hf), id)
			hasCode(t, err, fault.NotFound)
			_, err = keys.Revoke(elsewhere, engine.Of(hf), id, "eve")
			hasCode(t, err, fault.NotFound)
			got, text, err := keys.Rotate(elsewhere, engine.Of(hf), id, 0, "eve")
			hasCode(t, err, fault.NotFound)
			if got.ID != "" || text != "" {
				t.Errorf("%s: rotation returned %+v", what, got)
			}
		}
		all, err := keys.List(elsewhere, engine.Of(hf), "", 0)
		if err != nil || len(all) != 1 || all[0].ID != mine.ID {
			t.Errorf("other workspace has API keys %+v, error %v", all, err)
		}
		now, err := keys.Get(t.Context(), engine.Of(hf), k.ID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "left alone", now, k)
		ring, _ := newRing(hf)
		same(t, "left alone", accepted(t, ring, text), k)
		if got, want := names(t, hf, k.ID), "0 created by ann"; got != want {
			t.Errorf("history is %q, want %q", got, want)
		}
	})
}

// TestWhatIsWrongIsRefused verifies the limits of a new key, and that they may be reached.
func TestWhatIsWrongIsRefused(t *testing.T) {
	hf := holdfasttest.Open(t)
	many := make([]string, keys.MaxRequesters+1)
	for i := range many {
		many[i] = strings.Repeat("ä", i+1)
	}
	long := strings.Repeat("é", 255)
	for field, change := range map[string][]func(*keys.CreateArgs){
		"name": {func(a *keys.CreateArgs) { a.Name = "" }, func(a *keys.CreateArgs) { a.Name = long + "x" },
			func(a *keys.CreateArgs) { a.Name = "a\x00" }},
		"role": {func(a *keys.CreateArgs) { a.Role = "" }, func(a *keys.CreateArgs) { a.Role = "Admin" }},
		"requesters": {func(a *keys.CreateArgs) { a.Requesters = many }, func(a *keys.CreateArgs) { a.Requesters = []string{""} },
			func(a *keys.CreateArgs) { a.Requesters = []string{"a", "b", "a"} }, func(a *keys.CreateArgs) { a.Requesters = []string{long + "x"} }},
		"rate":     {func(a *keys.CreateArgs) { a.Rate = -1 }, func(a *keys.CreateArgs) { a.Rate = keys.MaxRate + 1 }},
		"lifetime": {func(a *keys.CreateArgs) { a.Lifetime = -1 }, func(a *keys.CreateArgs) { a.Lifetime = keys.MaxTime + 1 }},
		"by":       {func(a *keys.CreateArgs) { a.By = "" }, func(a *keys.CreateArgs) { a.By = long + "x" }},
	} {
		for i, f := range change {
			a := plain
			f(&a)
			_, text, err := keys.Create(t.Context(), engine.Of(hf), a)
			e, ok := errors.AsType[*fault.Error](err)
			if !ok || e.Code != fault.Validation || e.Fields["field"] != field || text != "" {
				t.Errorf("%s, case %d: got error %v", field, i, err)
			}
		}
	}
	k, _ := create(t, hf, keys.CreateArgs{Name: long, Role: keys.Worker, Requesters: many[1:], Rate: keys.MaxRate, Lifetime: keys.MaxTime, By: long})
	for _, overlap := range []time.Duration{-1, keys.MaxTime + 1} {
		_, _, err := keys.Rotate(t.Context(), engine.Of(hf), k.ID, overlap, "bob")
		hasCode(t, err, fault.Validation)
	}
	_, _, err := keys.Rotate(t.Context(), engine.Of(hf), k.ID, 0, "")
	hasCode(t, err, fault.Validation)
	_, err = keys.Revoke(t.Context(), engine.Of(hf), k.ID, "")
	hasCode(t, err, fault.Validation)
	_, err = keys.List(t.Context(), engine.Of(hf), "a\x00", 1)
	hasCode(t, err, fault.Validation)
	if _, _, err := keys.Rotate(t.Context(), engine.Of(hf), k.ID, keys.MaxTime, "bob"); err != nil {
		t.Error(err)
	}
}
