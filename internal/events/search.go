package events

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// A search reads a stream or the feed in its order and filters it in the database. There is no index by name,
// correlation, actor or time, because every append would pay for it. Instead one statement reads at most
// [searchScan] events, and returns those that match and the last one, from which the next statement continues. So
// a page of a search may be empty although there is more.
//
// In one stream, a range of times is found by bisection, because the times of a stream are in order. The range is read with
// a margin of [Slack] on both sides, for a clock that was set back.

const (
	// searchScan is the number of events that one statement reads.
	searchScan = 1000
	// Slack is by how much the times of a stream may be out of order.
	Slack = time.Hour
)

// Filter selects events. The zero Filter selects all.
type Filter struct {
	Names       []string
	Correlation string
	Actor       string
	Since       time.Time // inclusive; zero for no limit
	Until       time.Time // exclusive; zero for no limit
}

// IsZero reports whether the filter selects all events.
func (f Filter) IsZero() bool {
	return len(f.Names) == 0 && f.Correlation == "" && f.Actor == "" && f.Since.IsZero() && f.Until.IsZero()
}

// maxNames is the maximum number of names in a filter.
const maxNames = 100

// Check refuses a filter that no event can match.
func (f Filter) Check() error {
	if len(f.Names) > maxNames {
		return fault.New(fault.Validation, "a filter can have at most %d names, got %d", maxNames, len(f.Names))
	}
	for _, name := range f.Names {
		if err := strictjson.Text("name", name, MaxName); err != nil {
			return err
		}
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return fault.New(fault.Validation, "since must be before until, got %s and %s", f.Since.UTC().Format(time.RFC3339), f.Until.UTC().Format(time.RFC3339))
	}
	return CheckMeta(Meta{Correlation: f.Correlation, Actor: f.Actor})
}

// Bind binds the filter to the arguments of a search.
func (f Filter) Bind(args *store.Args) {
	names := []byte("[]")
	if len(f.Names) > 0 {
		names, _ = json.Marshal(f.Names) // cannot fail for strings
	}
	args.Text("names", string(names))
	args.Text("correlation", f.Correlation)
	args.Text("actor", f.Actor)
	args.MaybeInt("since", millis(f.Since))
	args.MaybeInt("until", millis(f.Until))
}

func millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	return new(t.UnixMilli())
}

// SearchArgs is a search of a stream or, with a position as From, of the feed.
type SearchArgs struct {
	Stream   string
	From     int64
	Backward bool
	Limit    int
	Filter
}

// Found is an event that a search returns. The last one of a statement may not match: the search continues after it.
type Found struct {
	Event
	At     int64 // the version of the event, or its position in the feed
	Wanted bool  // it matches the filter
	Ended  bool  // there is nothing behind it
}

// ScanFound scans the rows of a search.
var ScanFound = store.Each(func(f *Found) []any {
	return []any{&f.Wanted, &f.Ended, &f.At, &f.Stream, &f.Version, &f.Name, &f.Data, &f.Correlation, &f.Causation, &f.Actor, &f.Event.At, &f.Subject}
})

// BindSearch binds the arguments that the searches of a stream and of the feed share.
func BindSearch(a SearchArgs, args *store.Args) {
	args.Int("from", a.From)
	args.Int("scan", searchScan)
	args.Int("limit", int64(a.Limit))
	a.Bind(args)
}

func bindStreamSearch(a SearchArgs, args *store.Args) {
	args.Text("stream", a.Stream)
	BindSearch(a, args)
}

var (
	searchVerb     = store.NewVerb(store.Decl{Name: "events.search", Lane: store.Read}, nil, bindStreamSearch, ScanFound)
	searchBackVerb = store.NewVerb(store.Decl{Name: "events.search_backward", Lane: store.Read}, nil, bindStreamSearch, ScanFound)
)

// Search runs one statement of a search of a stream.
func Search(ctx context.Context, d store.Doer, a SearchArgs) ([]Found, error) {
	if err := strictjson.Text("stream", a.Stream, maxHistory); err != nil {
		return nil, err
	}
	if err := a.Check(); err != nil {
		return nil, err
	}
	verb := searchVerb
	if a.Backward {
		verb = searchBackVerb
	}
	all, err := verb.Do(ctx, d, a)
	if err == nil && len(all) > 0 && a.isBeyond(all[len(all)-1].Event.At) {
		all[len(all)-1].Ended = true
	}
	return all, err
}

// isBeyond reports whether a search has left its range of times.
func (a SearchArgs) isBeyond(t time.Time) bool {
	if a.Backward {
		return !a.Since.IsZero() && t.Before(a.Since.Add(-Slack))
	}
	return !a.Until.IsZero() && t.After(a.Until.Add(Slack))
}

// SearchStart returns the version at which a search of a stream starts.
func SearchStart(ctx context.Context, d store.Doer, a SearchArgs) (int64, error) {
	t := a.Since
	if a.Backward {
		t = a.Until
	}
	if t.IsZero() {
		return edge(a.Backward), nil
	}
	first, err := Read(ctx, d, ReadArgs{Stream: a.Stream, Limit: 1})
	if err != nil || len(first) == 0 {
		return edge(a.Backward), err
	}
	last, err := Read(ctx, d, ReadArgs{Stream: a.Stream, From: -1, Limit: 1, Backward: true})
	if err != nil || len(last) == 0 {
		return edge(a.Backward), err
	}
	if t = t.Add(-Slack); a.Backward {
		t = t.Add(2 * Slack)
	}
	return bisect(ctx, d, a.Stream, first[0].Version, last[0].Version, t)
}

func edge(backward bool) int64 {
	if backward {
		return math.MaxInt64
	}
	return 0
}

// bisect returns the first version between two whose event is not before a time, or the last of them.
func bisect(ctx context.Context, d store.Doer, stream string, first, last int64, t time.Time) (int64, error) {
	for first < last {
		middle := first + (last-first)/2
		e, err := Read(ctx, d, ReadArgs{Stream: stream, From: middle, Limit: 1})
		switch {
		case err != nil || len(e) == 0:
			return first, err
		case e[0].At.Before(t):
			first = max(e[0].Version, middle) + 1
		default:
			last = middle
		}
	}
	return first, nil
}
