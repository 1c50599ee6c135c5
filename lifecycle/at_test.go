package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

const draftConfig = `{"workflow": "draft", "owning_module": "m", "initial_status": "open", "status_types": ["open", "editing", "closed"], DATA
  "steps": [
    {"step_id": 1, "step_key": "edit", "status": "open", "successful_claim_state": {"a": ["editing", "open"]}, "successful_state": {"a": "open"}, "action": "Edit"},
    {"step_id": 2, "step_key": "fail", "status": "open", "successful_claim_state": {"a": ["editing", "open"]}, "successful_state": {"a": "open"}, "action": "Fail"},
    {"step_id": 3, "step_key": "touch", "status": "open", "successful_state": {"a": "open"}},
    {"step_id": 4, "step_key": "revise", "status": "open", "successful_state": {"a": "open"}, "action": "Edit"},
    {"step_id": 5, "step_key": "close", "status": "open", "successful_state": {"a": "closed"}}
  ]}`

func drafts(more string) *lifecycle.Lifecycle[json.RawMessage] {
	edit := func(ctx context.Context, a *lifecycle.Act[json.RawMessage]) error { return a.Set(a.Input) }
	return lifecycle.MustParse[json.RawMessage]([]byte(strings.Replace(draftConfig, "DATA", more, 1))).RecoveredBy().
		Action("Edit", edit, lifecycle.Transactional()).
		Action("Fail", func(context.Context, *lifecycle.Act[json.RawMessage]) error {
			return fault.New(fault.ActionInvalid, "no")
		}, lifecycle.Transactional())
}

// someData returns random data: nested objects, lists, nulls and members that come and go.
func someData(r *rand.Rand, depth int) any {
	switch n := r.IntN(6); {
	case n < 3 && depth < 3 || depth == 0:
		all := make(map[string]any)
		for _, name := range []string{"a", "b/c", "d~", ""} {
			if r.IntN(3) > 0 {
				all[name] = someData(r, depth+1)
			}
		}
		return all
	case n == 3:
		return []any{r.IntN(3), "x"}
	case n == 4:
		return nil
	}
	return r.IntN(3)
}

// TestEveryVersionCanBeRead verifies that each of 200 versions of an entity, by steps with and without a claim, with and
// without a change of data, and released ones, is read back as it was read then.
func TestEveryVersionCanBeRead(t *testing.T) {
	l := drafts("")
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx, r := t.Context(), rand.New(rand.NewPCG(1, 2))
		now, err := l.Create(ctx, hf, "d", json.RawMessage(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		seen := []lifecycle.Entity[json.RawMessage]{now}
		for now.Version < 200 {
			step := []string{"edit", "revise", "fail", "touch"}[r.IntN(4)]
			input, err := json.Marshal(someData(r, 0))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = l.Fire(ctx, hf, "d", step, "a", lifecycle.Input(json.RawMessage(input))); (err != nil) != (step == "fail") {
				t.Fatalf("%s: %v", step, err)
			}
			if now, err = l.Get(ctx, hf, "d"); err != nil {
				t.Fatal(err)
			}
			seen = append(seen, now)
		}
		for _, want := range seen {
			got, err := l.GetAt(ctx, hf, "d", want.Version)
			if err != nil || got.Status != want.Status || got.Version != want.Version || want.UpdatedAt.Sub(got.UpdatedAt).Abs() > time.Second || !got.CreatedAt.Equal(want.CreatedAt) ||
				!strictjson.Equal(got.Data, want.Data) {
				t.Fatalf("version %d: got %+v %s, %v, want %+v %s", want.Version, got, got.Data, err, want, want.Data)
			}
		}
		for _, version := range []int64{-1, now.Version + 1} {
			_, err := l.GetAt(ctx, hf, "d", version)
			testkit.WantCode(t, err, fault.NotFound, fmt.Sprint("version ", version))
		}
		_, err = l.GetAt(ctx, hf, "nobody", 0)
		testkit.WantCode(t, err, fault.NotFound, "nobody")
	}, l)
}

// TestALifecycleCanOptOutOfDataHistory verifies that such a lifecycle records no data, and says so.
func TestALifecycleCanOptOutOfDataHistory(t *testing.T) {
	l := drafts(`"data_history": false,`)
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		if _, err := l.Create(ctx, hf, "d", json.RawMessage(`{"name":"Rumpelstilzchen"}`)); err != nil {
			t.Fatal(err)
		}
		for _, step := range []string{"edit", "revise"} {
			if _, err := l.Fire(ctx, hf, "d", step, "a", lifecycle.Input(map[string]any{})); err != nil {
				t.Fatal(err)
			}
		}
		_, err := l.GetAt(ctx, hf, "d", 0)
		testkit.WantCode(t, err, fault.Validation, "data_history")
		for e, err := range l.ReadHistory(ctx, hf, "d", 0) {
			if err != nil || strings.Contains(string(e.Data), "Rumpel") {
				t.Errorf("the history has %s, %v", e.Data, err)
			}
		}
	}, l)
}
