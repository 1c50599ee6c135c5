package scope_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/scope"
)

// TestEachVersionIsReadBack verifies that after 200 changes of every kind, each version of a scope reads as it was read then: also
// after deletions, with nulls, odd names and large numbers, in transactions, for patches that are replaced as a whole, and
// for edits of several callers in one statement.
func TestEachVersionIsReadBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		const seed = 17
		random := rand.New(rand.NewPCG(seed, seed))
		then := make(map[int64]string)
		s := scope.In[json.RawMessage](hf, "user", "u")
		note := func(x scope.Snapshot[json.RawMessage], err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			state := ""
			if x.Exists {
				state = string(x.State)
			}
			then[x.Version] = state
		}
		fields := []string{"a", "b\"c", "ä/~0", "n"}
		records := []string{`null`, `1`, `{"x": null, "y": [1, 2.50]}`, `"text"`, `12345678901234567890`, `[{"k": null}]`}
		many := make(map[string]int)
		for i := range 250 {
			many[fmt.Sprint("m", i)] = i
		}
		for len(then) < testlevel.Pick(70, 200, 200) {
			field, record := fields[random.IntN(3)], json.RawMessage(records[random.IntN(len(records))])
			switch random.IntN(9) {
			case 0:
				note(s.Inc(ctx, "n", random.Int64N(100)-50))
			case 1:
				note(s.Push(ctx, "list", record))
			case 2:
				note(s.SetRecord(ctx, "map", field, record))
			case 3:
				note(s.DeleteRecord(ctx, "map", field))
			case 4:
				note(s.Patch(ctx, map[string]any{field: record, "deep": map[string]any{"x": random.IntN(3), "gone": nil}}))
			case 5:
				note(s.Atomic(ctx, func(_ context.Context, old json.RawMessage) (json.RawMessage, error) {
					var m map[string]any
					if err := json.Unmarshal(old, &m); err != nil {
						return nil, err
					}
					m[field] = i64(random)
					return json.Marshal(m)
				}))
			case 6:
				err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
					x, err := scope.In[json.RawMessage](tx, "user", "u").Patch(ctx, map[string]any{field: random.IntN(1000)})
					note(x, err)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			case 7:
				switch random.IntN(6) {
				case 0:
					note(s.Delete(ctx))
				case 1:
					note(s.Patch(ctx, many))
				case 2:
					note(s.Put(ctx, json.RawMessage(`{"whole": 1.0, "n": 5}`)))
				}
			default:
				done := make(chan scope.Snapshot[json.RawMessage], 4)
				for range 4 {
					go func() {
						x, err := s.Push(ctx, "list", 1)
						if err != nil {
							t.Error(err)
						}
						done <- x
					}()
				}
				for range 4 {
					note(<-done, nil)
				}
			}
		}
		delete(then, -1) // an edit that changed nothing on a missing scope
		for version, want := range then {
			got, err := s.GetAt(ctx, version)
			if want == "" {
				if !errors.Is(err, holdfast.ErrNotFound) {
					t.Errorf("version %d: got %s, %v, want ErrNotFound", version, got.State, err)
				}
				continue
			}
			if err != nil || got.Version != version || !strictjson.Equal(got.State, []byte(want)) {
				t.Errorf("version %d: got %s, %v, want %s", version, got.State, err, want)
			}
		}
		for _, version := range []int64{-1, 100000} {
			if _, err := s.GetAt(ctx, version); !errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("version %d: got %v, want ErrNotFound", version, err)
			}
		}
		if _, err := scope.Memory[json.RawMessage]().GetAt(ctx, 0); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("memory: got %v, want ErrValidation", err)
		}
	})
}

// TestVersionsOfExpiredScopes verifies that each version reads as it was read then if the scope has expired in between and is changed before
// the janitor notices that, and if it is created again above the floor of its kind, twice.
func TestVersionsOfExpiredScopes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		s := scope.In[json.RawMessage](hf, "user", "u", scope.TTL(time.Minute))
		then := make(map[int64]string)
		note := func(x scope.Snapshot[json.RawMessage], err error) {
			t.Helper()
			if err != nil || !x.Exists {
				t.Fatalf("got %+v, %v", x, err)
			}
			then[x.Version] = string(x.State)
		}
		for life := range 2 {
			note(s.Patch(ctx, map[string]int{"life": life}))
			for _, edit := range []func() (scope.Snapshot[json.RawMessage], error){
				func() (scope.Snapshot[json.RawMessage], error) { return s.Inc(ctx, "n", 2) },
				func() (scope.Snapshot[json.RawMessage], error) { return s.Push(ctx, "list", 1) },
				func() (scope.Snapshot[json.RawMessage], error) { return s.SetRecord(ctx, "map", "k", 1) },
				func() (scope.Snapshot[json.RawMessage], error) { return s.Patch(ctx, map[string]int{"a": 1}) },
				func() (scope.Snapshot[json.RawMessage], error) { return s.Put(ctx, json.RawMessage(`{"whole": 1}`)) },
			} {
				holdfasttest.Advance(t, hf, 2*time.Minute)
				note(edit())
				note(s.Inc(ctx, "then", 1))
			}
			// The janitor notices the end, and forgets the scope and one with higher versions a day later.
			other := scope.In[json.RawMessage](hf, "user", "other", scope.TTL(time.Minute))
			for range 20 {
				if _, err := other.Inc(ctx, "n", 1); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				holdfasttest.Advance(t, hf, 25*time.Hour)
				holdfasttest.Round(t, hf)
			}
		}
		note(s.Inc(ctx, "n", 3))
		for version, want := range then {
			if got, err := s.GetAt(ctx, version); err != nil || !strictjson.Equal(got.State, []byte(want)) {
				t.Errorf("version %d: got %s, %v, want %s", version, got.State, err, want)
			}
		}
	})
}

func i64(random *rand.Rand) any { return []any{random.Int64(), nil, "x"}[random.IntN(3)] }

// TestAnUnknownBeginning verifies that a version is not made up if the history that led to it is not there: after events of a build
// that did not record what they changed, until a whole state is recorded or the scope is deleted.
func TestAnUnknownBeginning(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		s := scope.In[json.RawMessage](hf, "user", "u")
		for _, patch := range []string{`{"a": 1}`, `{"a": 2}`, `{"b": 3}`} {
			if _, err := s.Patch(ctx, json.RawMessage(patch)); err != nil {
				t.Fatal(err)
			}
		}
		meddle(t, hf, `UPDATE holdfast_history SET data = '{}' WHERE stream = '$scope/user/u' AND version = 1`)
		if _, err := s.Put(ctx, json.RawMessage(`{"c": 4}`)); err != nil {
			t.Fatal(err)
		}
		for version, want := range []string{`{"a":1}`, "", "", `{"c":4}`} {
			got, err := s.GetAt(ctx, int64(version))
			if want == "" && !errors.Is(err, holdfast.ErrNotFound) || want != "" && (err != nil || !strictjson.Equal(got.State, []byte(want))) {
				t.Errorf("version %d: got %s, %v, want %q", version, got.State, err, want)
			}
		}
		if _, err := s.Delete(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Patch(ctx, json.RawMessage(`{"d": 5}`)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.GetAt(ctx, 5); err != nil || !strictjson.Equal(got.State, []byte(`{"d":5}`)) {
			t.Errorf("after a deletion: got %s, %v", got.State, err)
		}
	})
}

// TestListScopes verifies that kinds and scopes are listed in order, without deleted and expired ones.
func TestListScopes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		for _, id := range []string{"b-2", "a", "b-1", "gone", "late"} {
			for _, kind := range []string{"user", "cart"} {
				var o []scope.Option
				if id == "late" {
					o = append(o, scope.TTL(time.Minute))
				}
				if _, err := scope.In[json.RawMessage](hf, kind, id, o...).Inc(ctx, "n", 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := scope.In[json.RawMessage](hf, "user", "gone").Delete(ctx); err != nil {
			t.Fatal(err)
		}
		list := func(kind, prefix string) string {
			var ids []string
			for x, err := range scope.List(ctx, hf, kind, scope.Filter{Prefix: prefix}) {
				if err != nil {
					t.Fatal(err)
				}
				if x.Kind != kind || x.Version != 0 || x.CreatedAt.IsZero() || (!x.ExpiresAt.IsZero()) != (x.ID == "late") {
					t.Errorf("listed %+v", x)
				}
				ids = append(ids, x.ID)
			}
			return strings.Join(ids, " ")
		}
		if got := list("user", ""); got != "a b-1 b-2 late" {
			t.Errorf("listed %q", got)
		}
		holdfasttest.Advance(t, hf, time.Hour)
		for _, c := range []struct{ kind, prefix, want string }{{"user", "", "a b-1 b-2"}, {"cart", "", "a b-1 b-2 gone"}, {"user", "b-", "b-1 b-2"}, {"none", "", ""}} {
			if got := list(c.kind, c.prefix); got != c.want {
				t.Errorf("%+v: listed %q", c, got)
			}
		}
		if kinds, err := holdfast.Collect(scope.ListKinds(ctx, hf)); err != nil || strings.Join(kinds, " ") != "cart user" {
			t.Errorf("kinds are %q, %v", kinds, err)
		}
		other := holdfast.InWorkspace(ctx, "other")
		if kinds, err := holdfast.Collect(scope.ListKinds(other, hf)); err != nil || len(kinds) != 0 {
			t.Errorf("another workspace has the kinds %q, %v", kinds, err)
		}
		if all, err := holdfast.Collect(scope.List(other, hf, "user", scope.Filter{})); err != nil || len(all) != 0 {
			t.Errorf("another workspace lists %v, %v", all, err)
		}
		x, err := scope.In[json.RawMessage](hf, "user", "a", scope.ExpectVersion(7)).Put(ctx, json.RawMessage(`{}`))
		if !errors.Is(err, holdfast.ErrConcurrency) {
			t.Errorf("put at another version: %+v, %v", x, err)
		}
		if x, err = scope.In[json.RawMessage](hf, "user", "a", scope.ExpectVersion(0)).Put(ctx, json.RawMessage(`{"m": 1}`)); err != nil || x.Version != 1 || string(x.State) != `{"m":1}` && string(x.State) != `{"m": 1}` {
			t.Errorf("put: %+v, %v", x, err)
		}
	})
}

// meddle changes the database directly.
func meddle(t *testing.T, hf *holdfast.Engine, text string) {
	t.Helper()
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		_, err := storetest.Exec(ctx, tx, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
