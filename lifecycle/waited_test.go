package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// begun begins the effect again, and expects its state to be begun.
func begun(journal func(context.Context, string, int) (holdfast.EffectInfo, error)) func() error {
	return func() error {
		x, err := journal(context.Background(), "charge", 0)
		if err == nil && x.State != "begun" {
			err = fmt.Errorf("got effect state %s, want begun", x.State)
		}
		return err
	}
}

// Verifies that a call that waited for its entity takes changes during the wait into account: two callers
// that report the same result of an effect both succeed, and a settle after such a report is a success.
func TestWhatWasDoneWhileACallWaitedCounts(t *testing.T) {
	t.Parallel()
	for _, second := range []string{"done", "settle", "begin", "begin again", "end again"} {
		t.Run(second, func(t *testing.T) {
			t.Parallel()
			url := holdfasttest.PostgreSQL(t)
			w := newWorld(t, url, invoices)
			w.create("i")
			c := w.claim("i", "close")
			effect := func(name string, result json.RawMessage) func() error {
				return func() (err error) {
					if result == nil {
						_, err = c.BeginEffect(t.Context(), name, 0)
					} else {
						_, err = c.EffectDone(t.Context(), name, 0, result)
					}
					return err
				}
			}
			if err := effect("charge", nil)(); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(second, "again") { // it came to nothing before
				if _, err := c.EffectNotDone(t.Context(), "charge", 0); err != nil {
					t.Fatal(err)
				}
			}
			done := effect("charge", json.RawMessage(`1`))
			settle := func() error { _, err := c.Settle(t.Context(), nil, nil); return err }
			calls := map[string][]func() error{
				"done":        {done, done},
				"settle":      {done, settle},
				"begin":       {effect("mail", nil), effect("mail", json.RawMessage(`2`)), done},
				"begin again": {effect("charge", nil), begun(c.BeginEffect)},
				"end again":   {effect("charge", nil), done},
			}[second]
			for i, err := range storetest.Queue(t, url, `SELECT FROM holdfast.entity WHERE id = $1 FOR UPDATE`, []any{"i"}, nil, calls...) {
				if err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			}
			if second == "begin again" {
				if err := done(); err != nil {
					t.Error(err)
				}
			}
			if second != "settle" {
				if err := settle(); err != nil {
					t.Error(err)
				}
			}
			if got := w.get("i"); got.Status != "closed" {
				t.Errorf("%+v", got)
			}
		})
	}
}
