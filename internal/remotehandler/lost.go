package remotehandler

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Lost is work that was handed out to a remote handler that never called back: an
// action, a step of a run, an item of a batch or a stream of a reaction.
type Lost struct {
	Place   string    // sort key among all lost hand-outs
	Kind    string    // action, runStep, batchItem or reaction
	Parts   [3]string // by kind: lifecycle, entity, operation; run, step, visit; batch, item; reaction, stream
	Handler string
	Held    bool // it is handed out again
	Epoch   int64
	Times   int64 // lost hand-outs in a row
	Error   string
	At      time.Time
}

type listLostDeliveriesArgs struct {
	after string `arg:"after"`
	limit int    `arg:"limit"`
}

var listLostDeliveriesVerb = store.VerbOf[listLostDeliveriesArgs](store.Decl{Name: "handlers.list_lost_deliveries", Lane: store.Read}, nil,
	store.Each(func(l *Lost) []any {
		return []any{&l.Place, &l.Kind, &l.Parts[0], &l.Parts[1], &l.Parts[2], &l.Handler, &l.Held, &l.Epoch, &l.Times, &l.Error, &l.At}
	}))

// LostHandOuts returns the work of the context's workspace whose hand-outs were
// lost, ordered by place, after the given place.
func LostHandOuts(ctx context.Context, d store.Doer, after string, limit int) ([]Lost, error) {
	return listLostDeliveriesVerb.Do(ctx, d, listLostDeliveriesArgs{after, limit})
}
