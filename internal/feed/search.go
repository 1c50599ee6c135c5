package feed

import (
	"context"
	"math"

	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
)

var (
	searchVerb     = store.NewVerb(store.Decl{Name: "feed.search", Lane: store.Read}, nil, events.BindSearch, events.ScanFound)
	searchBackVerb = store.NewVerb(store.Decl{Name: "feed.search_backward", Lane: store.Read}, nil, events.BindSearch, events.ScanFound)
)

// Search runs one statement of a search of the feed, from a position.
func Search(ctx context.Context, d store.Doer, a events.SearchArgs) ([]events.Found, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if a.Backward {
		return searchBackVerb.Do(ctx, d, a)
	}
	return searchVerb.Do(ctx, d, a)
}

// SearchStart returns the position at which a search of the feed starts: at one of its ends. Positions are not in the order of
// times: if events were appended while no node numbered them, they are numbered stream by stream.
func SearchStart(_ context.Context, _ store.Doer, a events.SearchArgs) (int64, error) {
	if a.Backward {
		return math.MaxInt64, nil
	}
	return 1, nil
}
