package runs

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/definitions"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Inbox is a place among the signals that no step has taken; the zero value is before all.
type Inbox struct {
	nth                  int
	deaf                 bool // the step that the run stands at waits for it all the same
	workspace, run, kind string
	n                    int64
}

// inboxPage is how many signals one statement looks at.
const inboxPage = 500

var unheardVerb = store.NewVerb(store.Decl{Name: "runs.unheard", Lane: store.Read}, nil,
	func(after Inbox, args *store.Args) {
		args.Text("after_workspace", after.workspace)
		args.Text("after_run", after.run)
		args.Text("after_type", after.kind)
		args.Int("after_n", after.n)
		args.Int("limit", inboxPage)
	},
	func(all *[]Inbox, r store.Row) error {
		var x Inbox
		err := r.Scan(&x.nth, &x.deaf, &x.workspace, &x.run, &x.kind, &x.n)
		*all = append(*all, x)
		return err
	})

// Rouse looks at a page of the signals that no step has taken, of a shard, and wakes the runs
// that wait for one of them. It returns how many those were, and where to go on; the zero
// value says that this was the last page. There are none to be woken, unless a program from
// before has left them: a signal and the wake of its step are one transaction.
func (k *Desk) Rouse(ctx context.Context, d store.Doer, shard int16, after Inbox) (woken int, next Inbox, err error) {
	page, err := unheardVerb.DoAt(ctx, d, store.Place{Shard: shard}, after)
	for _, x := range page {
		if x.nth == inboxPage {
			next = x
		}
		if !x.deaf {
			continue
		}
		yes, failed := k.rouse(ctx, d, store.Place{Shard: shard, Workspace: x.workspace}, x.run)
		err = errors.Join(err, failed) // one that cannot be woken must not keep the others asleep
		if yes {
			woken++
		}
	}
	return woken, next, err
}

// rouse gives a run the signal that it waits for, whenever its step would be due.
func (k *Desk) rouse(ctx context.Context, d store.Doer, at store.Place, run string) (bool, error) {
	l, err := load(ctx, d, at, loadArgs{run: run})
	if fault.CodeOf(err) == fault.NotFound { // its time was over
		return false, nil
	}
	if err != nil || l.Step.Type != definitions.Event || l.Step.Status != Waiting || l.signal.id == "" {
		return false, err
	}
	_, err = k.try(ctx, d, &l, "", 0, func(c *course) error {
		c.due(&l)
		c.how = ""
		return nil
	})
	if errors.Is(err, errAgain) || fault.CodeOf(err) == fault.LeaseLost { // it has moved on
		return false, nil
	}
	return err == nil, err
}
