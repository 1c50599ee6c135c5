package stream

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// FeedOptions is how the feed works. The zero value is ready to use.
type FeedOptions struct {
	// Workspaces are those that the feed is switched on in; none is the
	// default one. Once on, it stays on, and is numbered by every node that
	// has the part.
	Workspaces []string
}

// Feed makes the feed over all streams of a workspace: every event in one order,
// also those of before it was switched on. Hand it to [holdfast.Open]; while
// [holdfast.Engine.Run] runs, on any number of nodes, each event that is committed
// gets a position in the feed, once. [ReadFeed] and [Follow] read it.
//
// The order keeps that of each stream. Between streams it is about that of time:
// a transaction that commits late comes late. Whoever has read up to a position
// has read everything before it, and nothing is put in there any more.
func Feed(o FeedOptions) holdfast.Part { return &feedPart{o} }

type feedPart struct{ o FeedOptions }

// Start switches the feed on.
func (p *feedPart) Start(ctx context.Context, e *holdfast.Engine) error {
	spaces := p.o.Workspaces
	if len(spaces) == 0 {
		spaces = []string{store.DefaultWorkspace}
	}
	for _, space := range spaces {
		if err := feed.Open(holdfast.InWorkspace(ctx, space), engine.Of(e)); err != nil {
			return err
		}
	}
	feedsOf(e).on.Store(true)
	s := &feed.Sequencer{Doer: engine.Of(e), Hub: engine.Of(e).Hub(), Log: engine.Of(e).Reactions().Log}
	e.Background(s.Run)
	return nil
}

// feeds is what an engine knows of the feeds that it has to do with.
type feeds struct {
	on   atomic.Bool // the engine numbers
	open sync.Map    // workspaces
}

type feedsKey struct{}

func feedsOf(e *holdfast.Engine) *feeds {
	return engine.Of(e).Shared(feedsKey{}, func() any { return new(feeds) }).(*feeds)
}

// OpenFeed switches the feed on in the context's workspace, if the engine has the part
// [Feed], and the workspace is there: one that nobody has written to has no events.
func OpenFeed(ctx context.Context, e *holdfast.Engine) error {
	f, space := feedsOf(e), store.WorkspaceOf(ctx)
	if _, known := f.open.Load(space); known || !f.on.Load() {
		return nil
	}
	if there, err := store.WorkspaceNamed(ctx, engine.Of(e), space); err != nil || there == nil {
		return err
	}
	_, err := reactions.Get(ctx, engine.Of(e), feed.Reaction)
	if fault.CodeOf(err) == fault.NotFound {
		err = feed.Open(ctx, engine.Of(e))
	}
	if err == nil {
		f.open.Store(space, true)
	}
	return err
}

// Cursor is a place in the feed of a workspace. It may be kept and used at any
// later time; what it is made of is nobody's business. "" is the beginning.
type Cursor string

// FeedEvent is an event of the feed. Its Position is a cursor: reading after it
// goes on with the next event.
type FeedEvent struct {
	Event
	Position Cursor
}

// FeedPage is a part of the feed. Next is where to go on; a page with no events
// is the end of the feed for now.
type FeedPage struct {
	Events []FeedEvent
	Next   Cursor
}

// ReadFeed returns up to limit events of the feed after a cursor, in order, 1,000
// at the most, which limit 0 asks for. Whoever goes on from Next sees each event
// once and misses none. Events that their streams have dropped are passed over. A
// cursor that was never given out is [holdfast.ErrValidation].
func ReadFeed(ctx context.Context, d holdfast.Doer, after Cursor, limit int) (FeedPage, error) {
	position, err := after.position()
	if err != nil {
		return FeedPage{}, err
	}
	page, err := feed.Read(ctx, store.DoerOf(d), position, limit)
	if err != nil {
		return FeedPage{}, err
	}
	p := FeedPage{Next: cursor(page.Next)}
	for _, i := range page.Items {
		e := public(i.Event)
		e.Subject = i.Subject
		p.Events = append(p.Events, FeedEvent{e, cursor(i.Position)})
	}
	return p, nil
}

// Head returns where the feed stands now: after it comes what is numbered later.
func Head(ctx context.Context, d holdfast.Doer) (Cursor, error) {
	last, err := feed.Head(ctx, store.DoerOf(d))
	return cursor(last), err
}

// PositionOf returns the place of an event in the feed. It says no as long as the
// event has none, and where there is no such event.
func PositionOf(ctx context.Context, d holdfast.Doer, stream string, version Version) (Cursor, bool, error) {
	position, err := feed.PositionOf(ctx, store.DoerOf(d), stream, int64(version))
	return cursor(position), position > 0, err
}

// PositionsOf returns the places of some events of a stream in the feed, by version,
// as far as they have one.
func PositionsOf(ctx context.Context, d holdfast.Doer, stream string, first, last Version) (map[Version]Cursor, error) {
	found, err := feed.PositionsOf(ctx, store.DoerOf(d), stream, int64(first), int64(last))
	all := make(map[Version]Cursor, len(found))
	for version, position := range found {
		all[Version(version)] = cursor(position)
	}
	return all, err
}

// Follow gives f every event of the feed after a cursor, and then each as it
// comes, until ctx ends or f returns an error, which Follow returns. To go on
// later, keep the Position of the last event that was handled.
//
// It waits for the engine's own commits and, where the engine runs, for those of
// other nodes; and it looks by itself every second or two. While the database
// cannot be reached it goes on trying.
func Follow(ctx context.Context, e *holdfast.Engine, after Cursor, f func(FeedEvent) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	read := store.NewBudget(followBytes)
	p := wake.Poller{Hub: engine.Of(e).Hub(), Topics: []string{feed.Topic(store.WorkspaceOf(ctx))}, Log: engine.Of(e).Reactions().Log,
		Poll: func(ctx context.Context) (bool, error) {
			if err := OpenFeed(ctx, e); err != nil { // the workspace may be one of later
				return false, err
			}
			read.Refill()
			page, err := ReadFeed(read.In(ctx), e, after, read.Rows(events.MaxRead))
			if err != nil && !passing(err) {
				stop(err)
			}
			for _, event := range page.Events {
				if ctx.Err() != nil {
					break
				}
				if err := f(event); err != nil {
					stop(err)
					break
				}
				after = event.Position
			}
			if len(page.Events) == 0 && err == nil {
				after = page.Next
			}
			return len(page.Events) > 0, err
		}}
	p.Run(ctx)
	return context.Cause(ctx)
}

// followBytes is about how much is read at once for who follows: there may be many of them.
const followBytes = store.PageBytes / 256

// passing says whether an error of a read may be gone at the next.
func passing(err error) bool {
	var f *fault.Error
	return !errors.As(err, &f) || f.Code == fault.Unavailable
}

// cursorMark begins every cursor, so that what is none is not taken for one.
const cursorMark = "p"

func cursor(position int64) Cursor {
	if position == 0 {
		return ""
	}
	return Cursor(cursorMark + strconv.FormatInt(position, 36))
}

// position reads a cursor. There is one way to write each.
func (c Cursor) position() (int64, error) {
	if c == "" {
		return 0, nil
	}
	if text := string(c); len(text) > len(cursorMark) {
		position, err := strconv.ParseInt(text[len(cursorMark):], 36, 64)
		if err == nil && position > 0 && cursor(position) == c {
			return position, nil
		}
	}
	return 0, fault.New(fault.Validation, "%q is no cursor of the feed: use one that it gave out, as it is", string(c)).With("field", "cursor")
}
