package refusals_test

import (
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

// Verifies that a workspace that is refused repeatedly does not fill the database, that another workspace is
// logged beside it, and that a long detail is not stored.
func TestRefusalsAreBounded(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		l := refusals.NewLog(engine.Of(e))
		note := func(workspace string, a refusals.Attempt) store.Partition {
			t.Helper()
			at, err := engine.Of(e).Partition(holdfast.InWorkspace(t.Context(), workspace), store.Write)
			if err != nil {
				t.Fatal(err)
			}
			a.Lifecycle, a.Step, a.Requester, a.Code = "invoice", "close", "admin", "CLAIM_FAILED"
			l.Note(at, a)
			return at
		}
		const tries, entities = 4 * refusals.Burst, 20
		for i := range tries {
			note("loud", refusals.Attempt{Entity: strconv.Itoa(i % entities)})
			if i%100 == 0 {
				l.Flush() // the waiting refusals are limited too
			}
		}
		note("quiet", refusals.Attempt{Entity: "q", Detail: map[string]any{"status": strings.Repeat("x", 1<<20)}})
		l.Flush()
		stored := 0
		for i := range entities {
			all, err := refusals.List(holdfast.InWorkspace(t.Context(), "loud"), engine.Of(e), "invoice", strconv.Itoa(i), 1000)
			if err != nil {
				t.Fatal(err)
			}
			stored += len(all)
		}
		if stored < refusals.Burst || stored == tries {
			t.Errorf("%d of %d refusals are stored", stored, tries)
		}
		all, err := refusals.List(holdfast.InWorkspace(t.Context(), "quiet"), engine.Of(e), "invoice", "q", 0)
		if err != nil || len(all) != 1 || all[0].Detail["status"] != nil || all[0].Detail["truncated"] != true {
			t.Errorf("other workspace has %d stored refusals, error %v, want 1", len(all), err)
		}
	})
}
