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

// FeedOptions are the options of [Feed]. The zero value is ready to use.
type FeedOptions struct {
	// Workspaces are the workspaces in which the feed is switched on; none means the default
	// workspace. Once switched on, it stays on. Every node that was opened with
	// [Feed] assigns positions.
	Workspaces []string
}

// Feed returns the part that provides the feed of a workspace: all events of all streams in one order, including events
// from before the feed was switched on. Pass it to [holdfast.Open]. While [holdfast.Engine.Run] runs, on any number of
// nodes, each committed event gets one position in the feed. [ReadFeed] and [Follow] read it.
//
// The feed preserves the order of each stream. Between streams, the order is approximately that of the commits. No
// event is ever inserted before a position that has been assigned, so a reader at a position has read everything before
// it.
func Feed(o FeedOptions) holdfast.Part { return &feedPart{o} }

type feedPart struct{ o FeedOptions }

// Register switches the feed on.
func (p *feedPart) Register(ctx context.Context, e *holdfast.Engine) error {
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

// feeds is the state of an engine that concerns feeds.
type feeds struct {
	on   atomic.Bool // the engine assigns positions
	open sync.Map    // workspaces whose feed is known to be on
}

type feedsKey struct{}

func feedsOf(e *holdfast.Engine) *feeds {
	return engine.Of(e).Shared(feedsKey{}, func() any { return new(feeds) }).(*feeds)
}

// OpenFeed switches the feed on in the context's workspace, if the engine has the part [Feed] and
// the workspace exists. A workspace is created by the first write to it.
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

// Cursor is a position in the feed of a workspace. It may be stored and used at any later time. Its format is opaque,
// except that "" is the beginning of the feed.
type Cursor string

// FeedEvent is an event of the feed. Its Position is a cursor: a read after it continues with the
// next event.
type FeedEvent struct {
	Event
	Position Cursor
}

// FeedPage is a page of the feed. Next is the cursor to continue from. A page without events means that the reader has
// reached the current end of the feed.
type FeedPage struct {
	Events []FeedEvent
	Next   Cursor
}

// ReadFeed returns up to limit events of the feed after a cursor, in order. The maximum is 1,000 events; a limit of 0
// means the maximum. A reader that continues from Next sees each event once and misses none. Events that were removed
// from their streams are skipped. If the feed never returned the cursor, ReadFeed returns [holdfast.ErrValidation].
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

// FeedHead returns the cursor at the current end of the feed: events that get a position later come
// after it.
func FeedHead(ctx context.Context, d holdfast.Doer) (Cursor, error) {
	last, err := feed.Head(ctx, store.DoerOf(d))
	return cursor(last), err
}

// FeedPosition returns the position of an event in the feed. It returns false if the event has none
// yet, or does not exist.
func FeedPosition(ctx context.Context, d holdfast.Doer, stream string, version Version) (Cursor, bool, error) {
	position, err := feed.PositionOf(ctx, store.DoerOf(d), stream, int64(version))
	return cursor(position), position > 0, err
}

// FeedPositions returns the positions in the feed of the events of a stream from first to last, by version. The map
// does not contain events that have no position yet.
func FeedPositions(ctx context.Context, d holdfast.Doer, stream string, first, last Version) (map[Version]Cursor, error) {
	found, err := feed.PositionsOf(ctx, store.DoerOf(d), stream, int64(first), int64(last))
	all := make(map[Version]Cursor, len(found))
	for version, position := range found {
		all[Version(version)] = cursor(position)
	}
	return all, err
}

// Follow calls f with every event of the feed after a cursor, and then with each new one, until ctx ends or f returns
// an error. Follow returns that error. To continue later, store the Position of the last event that was handled.
//
// Follow wakes at commits of this engine and, while the engine runs, of other nodes; it also polls every second or two.
// While the database is unreachable, Follow keeps retrying.
func Follow(ctx context.Context, e *holdfast.Engine, after Cursor, f func(FeedEvent) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	read := store.NewBudget(followBytes)
	p := wake.Poller{Hub: engine.Of(e).Hub(), Topics: []string{feed.Topic(store.WorkspaceOf(ctx))}, Log: engine.Of(e).Reactions().Log,
		Poll: func(ctx context.Context) (bool, error) {
			if err := OpenFeed(ctx, e); err != nil { // the workspace may be created later
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

// followBytes is the approximate size of one read of a follower. It is small because there may be
// many followers.
const followBytes = store.PageBytes / 256

// passing reports whether an error of a read may be gone at the next attempt.
func passing(err error) bool {
	var f *fault.Error
	return !errors.As(err, &f) || f.Code == fault.Unavailable
}

// cursorMark begins every cursor, so that other text is not mistaken for one.
const cursorMark = "p"

func cursor(position int64) Cursor {
	if position == 0 {
		return ""
	}
	return Cursor(cursorMark + strconv.FormatInt(position, 36))
}

// position parses a cursor. Each position has exactly one valid form.
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
	return 0, fault.New(fault.Validation, "%q is not a cursor of the feed: pass back a cursor that a read returned", string(c)).With("field", "cursor")
}
