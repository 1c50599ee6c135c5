package scope_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/scope"
)

// TestOnlyToldRefusalsAreRecorded verifies that a change that is tried again because another writer was faster is not recorded as
// refused if it succeeds, and once if it does not; and that a change with an expected version that the scope does not have is recorded.
func TestOnlyToldRefusalsAreRecorded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		type state struct{ N int }
		faster := 0
		change := func(_ context.Context, now state) (state, error) {
			now.N++
			if faster--; faster < 0 {
				return now, nil
			}
			_, err := scopestore.Put(context.WithoutCancel(ctx), engine.Of(hf), scopestore.PutArgs{Kind: "user", ID: "u", State: fmt.Appendf(nil, `{"N":%d}`, 10*faster)})
			return now, err
		}
		recorded := func(want ...string) {
			t.Helper()
			engine.Of(hf).Refusals().Flush(ctx)
			all, err := refusals.Recent(ctx, engine.Of(hf), "", 10)
			got := []string{}
			for _, r := range all {
				got = append(got, fmt.Sprint(r.Stream, " ", r.Action, " ", r.Code, " ", r.Version))
			}
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("recorded %v, %v, want %v", got, err, want)
			}
		}
		s := scope.In[state](hf, "user", "u")
		faster = 2
		if _, err := s.Atomic(ctx, change); err != nil {
			t.Fatal(err)
		}
		recorded()
		faster = 2
		_, err := scope.In[state](hf, "user", "u", scope.MaxAttempts(2)).Atomic(ctx, change)
		testkit.WantCode(t, err, fault.Concurrency, "2 attempts")
		_, err = scope.In[state](hf, "user", "u", scope.ExpectVersion(99)).Put(ctx, state{})
		testkit.WantCode(t, err, fault.Concurrency, "99")
		recorded("$scope/user/u put CONCURRENCY_ERROR 4", "$scope/user/u put CONCURRENCY_ERROR 4")
	})
}
