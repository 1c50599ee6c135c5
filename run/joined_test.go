package run_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/run"
)

// TestRetentionOfARunThatEndsInATransaction verifies that the retention of the engine applies to a
// run that ends in a transaction of the program: one that is canceled there, and one that a start
// completes.
func TestRetentionOfARunThatEndsInATransaction(t *testing.T) {
	waits := run.Define("waits", "1", run.Signal("paid", "payment"))
	instant := run.Define("instant", "1", run.If("only", "true", "end", "end"))
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		first, _, err := waits.Start(ctx, hf, nil)
		if err != nil {
			t.Fatal(err)
		}
		var second run.Run
		err = hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) (err error) {
			if first, err = run.Cancel(ctx, tx, first.ID); err == nil {
				second, _, err = instant.Start(ctx, tx, nil)
			}
			return err
		})
		if err != nil || !first.Over() || !second.Over() {
			t.Fatalf("runs are %s and %s, want both ended: %v", first.Status, second.Status, err)
		}
		holdfasttest.Advance(t, hf, time.Hour+time.Minute)
		engine.Of(hf).Round(ctx)
		for _, id := range []string{first.ID, second.ID} {
			if r, err := run.Get(ctx, hf, id); fault.CodeOf(err) != fault.NotFound {
				t.Errorf("after its retention, run of %s: %s, %v, want NOT_FOUND", r.Definition, r.Status, err)
			}
		}
	}, run.Retention(time.Hour), waits, instant)
}

// commandLog is a transaction that records the names of its commands.
type commandLog struct {
	store.Conn
	names []string
}

func (l *commandLog) Run(ctx context.Context, c store.Command) error {
	l.names = append(l.names, c.Decl().Name)
	return l.Conn.Run(ctx, c)
}

// TestAStartInATransactionKnowsItsDefinition verifies that a start in a transaction neither stores nor
// reads a definition that the engine has cached, also for an equal definition; and that a definition stored by a transaction that rolled back is stored again.
func TestAStartInATransactionKnowsItsDefinition(t *testing.T) {
	def := run.Define("waits", "1", run.Signal("paid", "payment"))
	same := run.Define("waits", "1", run.Signal("paid", "payment"))
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := t.Context()
		start := func(d *run.Definition, end error) []string {
			t.Helper()
			var log *commandLog
			err := hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				log = &commandLog{Conn: store.TxOf(tx).Conn()}
				if _, _, err := d.Start(ctx, store.NewTx(log, engine.Of(hf).Runner().Directory), nil); err != nil {
					return err
				}
				return end
			})
			if err != end {
				t.Fatal(err)
			}
			return slices.DeleteFunc(log.names, func(name string) bool { return name != "runs.put_definition" && name != "runs.get_definition" })
		}
		for _, end := range []error{context.Canceled, nil} { // the first one rolls back
			if used := start(def, end); !slices.Equal(used, []string{"runs.put_definition"}) {
				t.Errorf("a start with a new definition used %q, want only put_definition", used)
			}
		}
		if _, _, err := def.Start(ctx, hf, nil); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for _, d := range []*run.Definition{def, same} {
				if used := start(d, nil); len(used) > 0 {
					t.Errorf("a start with a cached definition used %q, want none", used)
				}
			}
		}
	})
}
