package feed

import (
	"context"
	"math"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Item is an event with its position in the feed.
type Item struct {
	events.Event
	Position int64
}

// Page is a part of the feed. Next is the position to continue from: that of its last event or, at the end of
// the feed, the last assigned position, which is called the head.
type Page struct {
	Items []Item
	Next  int64
}

type readArgs struct {
	after int64 `arg:"after"`
	limit int   `arg:"limit"`
	bytes int64 `arg:"bytes"`
}

type found struct {
	head  int64
	gap   int64 // if lost is set, the last position before the gap that the cursor is in
	lost  bool
	items []Item
}

// span is a range of events of a stream.
type span struct {
	stream string `arg:"stream"`
	first  int64  `arg:"first"`
	last   int64  `arg:"last"`
}

var (
	readVerb     = store.VerbOf[readArgs](store.Decl{Name: "feed.read", Lane: store.Read}, nil, scanItem)
	headVerb     = store.VerbOf[struct{}](store.Decl{Name: "feed.get_head", Lane: store.Read}, nil, store.ScanValue[int64])
	positionVerb = store.VerbOf[span](store.Decl{Name: "feed.list_positions", Lane: store.Read}, nil,
		func(all *map[int64]int64, row store.Row) error {
			var version, position int64
			err := row.Scan(&version, &position)
			if *all == nil {
				*all = make(map[int64]int64)
			}
			(*all)[version] = position
			return err
		})
)

// scanItem scans a row. Each row contains the head of the feed; a row without a version contains nothing else.
func scanItem(f *found, row store.Row) error {
	var i Item
	var gap int64
	err := row.Scan(&f.head, &gap, &i.Position, &i.Stream, &i.Version, &i.Name, &i.Data, &i.Correlation, &i.Causation, &i.Actor, &i.At, &i.Subject)
	if gap >= 0 {
		f.gap, f.lost = gap, true
	}
	if err != nil || i.Version < 0 {
		return err
	}
	f.items = append(f.items, i)
	return nil
}

// Read returns up to limit events after a position, in order; 0 is before the first. Events that a stream has
// dropped are skipped. A position of an event that a restored backup did not have is a [fault.CursorExpired]. A position beyond the head is a [fault.Validation]: a reader that continued from there
// would miss the events before it.
func Read(ctx context.Context, d store.Doer, after int64, limit int) (Page, error) {
	return ReadBrief(ctx, d, after, limit, math.MaxInt64)
}

// ReadBrief is like [Read], and leaves out the data of events that have more than a number of bytes of it.
func ReadBrief(ctx context.Context, d store.Doer, after int64, limit int, bytes int64) (Page, error) {
	if limit <= 0 || limit > events.MaxRead {
		limit = events.MaxRead
	}
	f, err := readVerb.Do(ctx, d, readArgs{after, limit, bytes})
	f.items = f.items[:min(len(f.items), limit)]
	switch {
	case err != nil:
		return Page{}, err
	case f.lost:
		next := "read the feed from its start"
		if f.gap > 0 {
			next = "continue with the cursor " + Cursor(f.gap) + ", after the last event that was not lost"
		}
		return Page{}, fault.New(fault.CursorExpired, "the cursor is of an event that was lost when the database was restored from a backup: %s", next).With("cursor", Cursor(f.gap))
	case after > f.head:
		return Page{}, fault.New(fault.Validation, "the cursor is ahead of the feed: it belongs to another workspace or database, or is newer than a restored backup. Read the feed again from its start").
			With("field", "cursor")
	case len(f.items) == limit || len(f.items) > 0 && store.Cut(ctx):
		return Page{f.items, f.items[len(f.items)-1].Position}, nil
	}
	return Page{f.items, f.head}, nil
}

// Head returns the last assigned position, 0 for none.
func Head(ctx context.Context, d store.Doer) (int64, error) { return headVerb.Do(ctx, d, struct{}{}) }

// PositionOf returns the position of an event, or 0 if it has none yet.
func PositionOf(ctx context.Context, d store.Doer, stream string, version int64) (int64, error) {
	all, err := PositionsOf(ctx, d, stream, version, version)
	return all[version], err
}

// PositionsOf returns the positions of a range of events of a stream by version, for those that have one.
func PositionsOf(ctx context.Context, d store.Doer, stream string, first, last int64) (map[int64]int64, error) {
	if err := strictjson.Text("stream", stream, events.MaxName); err != nil {
		return nil, err
	}
	return positionVerb.Do(ctx, d, span{stream, first, last})
}
