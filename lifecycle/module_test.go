package lifecycle_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// Verifies that one janitor that is registered for a module recovers the claims of all lifecycles of the module, and
// that a lifecycle of another module that no janitor covers is refused, with its name.
func TestAModulesJanitorCoversItsLifecycles(t *testing.T) {
	named := func(name string) string { return strings.Replace(uncovered, "workflow: invoice", "workflow: "+name, 1) }
	onEach(t, func(t *testing.T, db string) {
		j := &cleaner{}
		first, second := unopened(t, db, named("order")), unopened(t, db, named("refund"))
		stranger := unopened(t, db, strings.Replace(named("parcel"), "owning_module: billing", "owning_module: post", 1))
		open := func(parts ...holdfast.Part) error {
			e, err := holdfast.Open(context.Background(), databaseAt(db), holdfast.Config{Log: slog.New(slog.DiscardHandler)}, parts...)
			if err == nil {
				_ = e.Close()
			}
			return err
		}
		err := open(first.l, second.l, stranger.l, lifecycle.ModuleJanitor("billing", j))
		testkit.WantCode(t, err, fault.Validation)
		if text := fmt.Sprint(err); !strings.Contains(text, `"parcel"`) || strings.Contains(text, `"order"`) || strings.Contains(text, `"refund"`) {
			t.Errorf("got %q, want only the lifecycle parcel", text)
		}
		testkit.WantCode(t, open(lifecycle.ModuleJanitor("billing", j), lifecycle.ModuleJanitor("billing")), fault.Conflict)
		testkit.WantCode(t, open(lifecycle.ModuleJanitor("billing", nil)), fault.Validation)
		testkit.WantCode(t, open(lifecycle.ModuleJanitor("")), fault.Validation)
		testkit.WantCode(t, open(first.l, lifecycle.ModuleJanitor("billing", &partialCleaner{covers: []string{"closing"}})), fault.Validation)
		if err := open(stranger.l, lifecycle.ModuleJanitor("post")); err != nil {
			t.Errorf("the standard janitor of the module is refused: %v", err)
		}

		e := first.engine(first.l, lifecycle.ModuleJanitor("billing", j), second.l)
		first.e, second.e = e, e
		for _, w := range []*world{first, second} {
			w.create("i")
			w.claim("i", "close")
		}
		first.advance(time.Hour)
		first.round()
		var seen []string
		for _, s := range j.seen {
			seen = append(seen, s.Lifecycle+" "+s.ClaimStatus)
		}
		slices.Sort(seen)
		if want := []string{"order closing", "refund closing"}; !slices.Equal(seen, want) {
			t.Errorf("the janitor got %v, want %v", seen, want)
		}
		for _, w := range []*world{first, second} {
			if got := w.get("i"); got.Claimed != nil || got.Status != "open" {
				t.Errorf("got %+v, want it open", got)
			}
		}
	})
}
