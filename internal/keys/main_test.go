package keys_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }

// plain is a key for tests that do not depend on its fields.
var plain = keys.CreateArgs{Name: "ci", Role: keys.Operate, Requesters: []string{"admin", "system"}, Rate: 7, By: "ann"}

func create(t *testing.T, d holdfast.Doer, a keys.CreateArgs) (keys.Key, string) {
	t.Helper()
	k, text, err := keys.Create(t.Context(), store.DoerOf(d), a)
	if err != nil {
		t.Fatal(err)
	}
	return k, text
}

// manualClock is a clock that the test moves.
type manualClock struct {
	mu sync.Mutex
	at time.Time
}

func (h *manualClock) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *manualClock) move(by time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = h.at.Add(by)
}

// newRing returns a ring with a manual clock.
func newRing(d holdfast.Doer) (*keys.Ring, *manualClock) {
	h := &manualClock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	r := keys.NewRing(store.DoerOf(d))
	r.SetClock(h.now)
	return r, h
}

func accepted(t *testing.T, r *keys.Ring, text string) keys.Key {
	t.Helper()
	k, err := r.Verify(t.Context(), text)
	if err != nil {
		t.Errorf("valid API key was refused: %v", err)
	}
	return k
}

const refusal = "AUTH_ERROR: the API key is missing or invalid: send a valid key in the Authorization header"

func refused(t *testing.T, r *keys.Ring, text, what string) {
	t.Helper()
	k, err := r.Verify(t.Context(), text)
	if fault.CodeOf(err) != fault.Auth || err.Error() != refusal || k.ID != "" {
		t.Errorf("%s: got API key %v, error %v", what, k, err)
	}
	var f *fault.Error
	if !errors.As(err, &f) || err != error(f) || len(f.Fields) > 0 || f.Unwrap() != nil {
		t.Errorf("%s: error has more details than those of other refusals: %#v", what, err)
	}
}

func hasCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Errorf("got error %v, want code %s", err, code)
	}
}

// same compares keys.
func same(t *testing.T, what string, got, want keys.Key) {
	t.Helper()
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Errorf("%s: got %s, want %s", what, a, b)
	}
}

func history(t *testing.T, d holdfast.Doer, id string) []events.Event {
	t.Helper()
	all, err := events.Read(t.Context(), store.DoerOf(d), events.ReadArgs{Stream: keys.Stream(id)})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// names returns a key's history: version, name and actor.
func names(t *testing.T, d holdfast.Doer, id string) string {
	t.Helper()
	var all []string
	for _, e := range history(t, d, id) {
		all = append(all, fmt.Sprintf("%d %s by %s", e.Version, e.Name, e.Actor))
	}
	return strings.Join(all, ", ")
}

func onSQLite(t *testing.T) bool { return strings.HasSuffix(t.Name(), "/sqlite") }

// dump returns every row of a table as text.
func dump(t *testing.T, hf *holdfast.Engine, table string, columns ...string) string {
	t.Helper()
	var b strings.Builder
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		b.Reset()
		if !onSQLite(t) {
			var text string
			err := postgres.Raw(tx).QueryRow(ctx, "SELECT coalesce(string_agg(row_to_json(k)::text, ' '), '') FROM holdfast."+table+" k").Scan(&text)
			b.WriteString(text)
			return err
		}
		rows, err := sqlite.Raw(tx).QueryContext(ctx, "SELECT concat_ws(' ', "+strings.Join(columns, ", ")+") FROM holdfast_"+table)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return err
			}
			fmt.Fprintln(&b, text)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
