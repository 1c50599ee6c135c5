package remotehandler

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Lost is what was handed out to somebody elsewhere of whom nothing was heard: an action,
// a step of a run, an item of a batch or a stream of a reaction.
type Lost struct {
	Place   string // among all others
	Kind    string // action, runStep, batchItem or reaction
	Parts   [3]string
	Handler string
	Held    bool // it is handed out again
	Epoch   int64
	Times   int64 // in a row
	Error   string
	At      time.Time
}

type lostArgs struct {
	behind string `arg:"after"`
	limit  int    `arg:"limit"`
}

var lostVerb = store.VerbOf[lostArgs](store.Decl{Name: "handlers.lost", Lane: store.Read}, nil,
	store.Each(func(l *Lost) []any {
		return []any{&l.Place, &l.Kind, &l.Parts[0], &l.Parts[1], &l.Parts[2], &l.Handler, &l.Held, &l.Epoch, &l.Times, &l.Error, &l.At}
	}))

// LostHandOuts returns what lost hand-outs were of, in the context's workspace and in the order of
// their places, behind one of them.
func LostHandOuts(ctx context.Context, d store.Doer, behind string, limit int) ([]Lost, error) {
	return lostVerb.Do(ctx, d, lostArgs{behind, limit})
}
