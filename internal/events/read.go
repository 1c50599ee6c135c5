package events

import (
	"context"
	"math"

	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// ReadArgs selects a part of a stream: up to Limit events from version From on, forward or backward. A limit of
// 0 or above [MaxRead] means MaxRead. Backward from a negative version means backward from the end.
type ReadArgs struct {
	Stream   string `arg:"stream"`
	From     int64  `arg:"from"`
	Limit    int    `arg:"limit"`
	Backward bool
}

var (
	readVerb = store.VerbOf[ReadArgs](store.Decl{Name: "events.read", Lane: store.Read},
		nil, scanEvent)
	readBackVerb = store.VerbOf[ReadArgs](store.Decl{Name: "events.read_backward", Lane: store.Read},
		nil, scanEvent)
)

var scanEvent = store.Each(func(e *Event) []any {
	return []any{&e.ID, &e.Version, &e.Name, &e.Data, &e.Correlation, &e.Causation, &e.Actor, &e.At, &e.Subject}
})

// maxHistory is the maximum length of a stream's name: that of a history contains up to two other names.
const maxHistory = 3 * MaxName

// Read returns a part of a stream, empty for a stream that does not exist.
func Read(ctx context.Context, d store.Doer, a ReadArgs) ([]Event, error) {
	if err := strictjson.Text("stream", a.Stream, maxHistory); err != nil {
		return nil, err
	}
	if a.Limit <= 0 || a.Limit > MaxRead {
		a.Limit = MaxRead
	}
	verb := readVerb
	if a.Backward {
		verb = readBackVerb
		if a.From < 0 {
			a.From = math.MaxInt64
		}
	}
	all, err := verb.Do(ctx, d, a)
	for i := range all {
		all[i].Stream = a.Stream
	}
	return all, err
}
