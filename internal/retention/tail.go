package retention

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
)

// HistoryEvent is an event of a history, as sent to watchers of a workspace. ID and N identify it; ids grow
// with the nodes' time.
type HistoryEvent struct {
	ID string // 32 hexadecimal digits
	N  int64
	events.Event
}

type tailArgs struct {
	after string `arg:"after"`
	n     int64  `arg:"n"`
	limit int    `arg:"limit"`
}

var tailVerb = store.VerbOf[tailArgs](store.Decl{Name: "history.tail", Lane: store.Read}, nil,
	store.Each(func(t *HistoryEvent) []any {
		return []any{&t.ID, &t.N, &t.Stream, &t.Version, &t.Name, &t.Data, &t.Correlation, &t.Causation, &t.Actor, &t.At}
	}))

// Tail returns the history events of the context's workspace after an id, in the order of ids. That is nearly
// the order of time, but a transaction that commits late has a small id: a reader that needs every event
// rereads some time back ([Back]) and skips the events it has seen.
func Tail(ctx context.Context, d store.Doer, after string, n int64, limit int) ([]HistoryEvent, error) {
	return tailVerb.Do(ctx, d, tailArgs{after, n, limit})
}

// Now returns an id of the current moment, by the node's clock: events after it are new.
func Now() string {
	id := store.NewID()
	return Back(hex.EncodeToString(id[:]), 0)
}

// First sorts before every id.
const First = "00000000000000000000000000000000"

// Back returns an id that is older by the given duration, and the first of its millisecond.
func Back(id string, by time.Duration) string {
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) != 16 {
		return First
	}
	ms := int64(0)
	for _, b := range raw[:6] {
		ms = ms<<8 | int64(b)
	}
	ms = max(0, ms-by.Milliseconds())
	var out uuid.UUID
	for i := 5; i >= 0; i-- {
		out[i] = byte(ms)
		ms >>= 8
	}
	return hex.EncodeToString(out[:])
}
