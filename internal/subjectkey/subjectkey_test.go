package subjectkey_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/subjectkey"
)

func find(t *testing.T, d holdfast.Doer, names ...string) map[string]subjectkey.Key {
	t.Helper()
	found, err := subjectkey.Find(t.Context(), store.DoerOf(d), names)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestOfRacingMakersAllGetTheKeyThatIsStored verifies that one key is stored and that
// every concurrent caller gets that key, also in a transaction.
func TestOfRacingMakersAllGetTheKeyThatIsStored(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for round := range 4 {
			name := fmt.Sprint("subject ", round)
			got := make([]string, 16)
			_, lost := holdfasttest.Race(t, len(got), func(i int) error {
				own := subjectkey.Key(fmt.Sprint("key ", i))
				make1 := func(ctx context.Context, d holdfast.Doer) error {
					key, err := subjectkey.Make(ctx, store.DoerOf(d), name, own)
					got[i] = string(key)
					return err
				}
				if i%2 == 0 {
					return make1(t.Context(), hf)
				}
				return hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error { return make1(ctx, tx) })
			})
			if len(lost) > 0 {
				t.Fatal(lost[0])
			}
			stored := string(find(t, hf, name)[name])
			for i, key := range got {
				if key != stored || key == "" {
					t.Errorf("caller %d got key %q, but %q is stored", i, key, stored)
				}
			}
		}
	})
}

// TestWhatIsForgottenStaysForgotten verifies that a key is deleted once, that its row
// remains and no other key is made, even for a subject that was forgotten before it had
// a key, and that of many concurrent callers one deletes the key.
func TestWhatIsForgottenStaysForgotten(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		if found := find(t, hf, "a"); len(found) != 0 {
			t.Errorf("found keys %v, want none", found)
		}
		if _, err := subjectkey.Make(t.Context(), engine.Of(hf), "a", subjectkey.Key("k")); err != nil {
			t.Fatal(err)
		}
		if err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			if had, err := subjectkey.Forget(ctx, store.DoerOf(tx), "a"); err != nil || !had {
				t.Errorf("Forget in a transaction returned %v, error %v", had, err)
			}
			return errors.New("no")
		}); err == nil {
			t.Fatal("the transaction was committed, want a rollback")
		}
		if found := find(t, hf, "a", "b"); string(found["a"]) != "k" || len(found) != 1 {
			t.Errorf("found keys %v, want only that of a", found)
		}
		dropped := make([]bool, 8)
		if _, lost := holdfasttest.Race(t, len(dropped), func(i int) (err error) {
			dropped[i], err = subjectkey.Forget(t.Context(), engine.Of(hf), "a")
			return err
		}); len(lost) > 0 {
			t.Fatal(lost[0])
		}
		n := 0
		for _, d := range dropped {
			if d {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d callers deleted the key, want 1", n)
		}
		if had, err := subjectkey.Forget(t.Context(), engine.Of(hf), "b"); err != nil || had {
			t.Errorf("Forget of an unknown subject returned %v, error %v", had, err)
		}
		for _, name := range []string{"a", "b"} {
			key, err := subjectkey.Make(t.Context(), engine.Of(hf), name, subjectkey.Key("new"))
			if err != nil || key != nil {
				t.Errorf("%s has a key again: %q, error %v", name, key, err)
			}
			if key, known := find(t, hf, "a", "b")[name]; !known || key != nil {
				t.Errorf("subject %s: known %v, key %q, want known without a key", name, known, key)
			}
		}
	})
}
