package events

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Stream describes a user's stream. Its events are those from First to Last.
type Stream struct {
	Name        string
	First, Last int64
	State       string // open, closing or closed
	Closed      string // the mode of a closed stream: archive or tombstone
	FirstAt     time.Time
	LastAt      time.Time
	LastName    string
}

// ListStreamsArgs selects streams in the order of their names: those after a name, with a prefix.
type ListStreamsArgs struct {
	After  string
	Prefix string
	Limit  int
}

type listStreamsArgs struct {
	after string `arg:"after"`
	from  string `arg:"from"`
	upto  string `arg:"upto"`
	limit int    `arg:"limit"`
}

type countNamesArgs struct {
	stream string `arg:"stream"`
	first  int64  `arg:"first"`
	limit  int    `arg:"limit"`
}

// NameCount is the number of events with a name.
type NameCount struct {
	Name  string
	Count int64
}

var (
	scanStream = store.Each(func(s *Stream) []any {
		return []any{&s.Name, &s.First, &s.Last, &s.State, &s.Closed, &s.FirstAt, &s.LastAt, &s.LastName}
	})
	listStreamsVerb = store.VerbOf[listStreamsArgs](store.Decl{Name: "streams.list", Lane: store.Read}, nil, scanStream)
	getStreamVerb   = store.NewVerb(store.Decl{Name: "streams.get", Lane: store.Read}, nil,
		func(name string, args *store.Args) { args.Text("stream", name) }, scanStream)
	countNamesVerb = store.VerbOf[countNamesArgs](store.Decl{Name: "streams.count_names", Lane: store.Read}, nil,
		store.Each(func(n *NameCount) []any { return []any{&n.Name, &n.Count} }))
)

// ListStreams returns a page of a workspace's streams, without the histories.
func ListStreams(ctx context.Context, d store.Doer, a ListStreamsArgs) ([]Stream, error) {
	if a.Prefix != "" {
		if err := strictjson.Text("prefix", a.Prefix, MaxName); err != nil {
			return nil, err
		}
	}
	all, err := listStreamsVerb.Do(ctx, d, listStreamsArgs{a.After, max(a.After, a.Prefix), store.PrefixEnd(a.Prefix), a.Limit})
	for i := range all {
		all[i] = all[i].utc()
	}
	return all, err
}

// GetStream returns a stream, or [fault.NotFound].
func GetStream(ctx context.Context, d store.Doer, name string) (Stream, error) {
	if err := strictjson.Text("stream", name, MaxName); err != nil {
		return Stream{}, err
	}
	all, err := getStreamVerb.Do(ctx, d, name)
	if err == nil && len(all) == 0 {
		err = fault.New(fault.NotFound, "stream %q does not exist", name)
	}
	if err != nil {
		return Stream{}, err
	}
	return all[0].utc(), nil
}

// CountNames counts the newest events of a stream by name, up to limit of them. first is the stream's first version.
func CountNames(ctx context.Context, d store.Doer, stream string, first int64, limit int) ([]NameCount, error) {
	return countNamesVerb.Do(ctx, d, countNamesArgs{stream, first, limit})
}

func (s Stream) utc() Stream {
	s.FirstAt, s.LastAt = store.OrZero(s.FirstAt).UTC(), store.OrZero(s.LastAt).UTC()
	return s
}
