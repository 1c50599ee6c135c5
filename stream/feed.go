package stream

import (
	"context"
	"errors"
	"iter"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/feed"
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

// Feed returns the part that provides a workspace's feed: the events of all streams of the program, without histories, in one
// order, including events from before the feed was switched on. Pass it to [holdfast.Open]. While [holdfast.Engine.Run] runs, on any number of
// nodes, each committed event gets one position in the feed. [ReadFeed] and [FollowFeed] read it. The feed exists in the
// workspaces that [FeedOptions] lists (without a list, in the default workspace), and in every workspace in which
// [FollowFeed] or the HTTP API first reads it. Once it exists, it stays. An engine has one such part; a second one is
// [holdfast.ErrConflict].
//
// The feed preserves the order of each stream. Between streams, the order is approximately the order of the commits. No
// event is ever inserted before a position that has been assigned, so a reader at a position has read everything before
// it.
func Feed(o FeedOptions) holdfast.Part { return &feedPart{o} }

type feedPart struct{ o FeedOptions }

// Register switches the feed on.
func (p *feedPart) Register(ctx context.Context, e *holdfast.Engine) error {
	if err := engine.Of(e).Once("stream.Feed"); err != nil { // a second one would start a second sequencer
		return err
	}
	spaces := p.o.Workspaces
	if len(spaces) == 0 {
		spaces = []string{store.DefaultWorkspace}
	}
	for _, space := range spaces {
		if err := feed.Open(holdfast.InWorkspace(ctx, space), engine.Of(e)); err != nil {
			return err
		}
	}
	feed.Enable(engine.Of(e))
	s := &feed.Sequencer{Doer: engine.Of(e), Hub: engine.Of(e).Hub(), Log: engine.Of(e).Reactions().Log}
	e.Background(s.Run)
	engine.Of(e).Steps(s.WorkKinds, s.Step) // for tests that step the loops: holdfasttest.Settle
	return nil
}

// Cursor is a position in the feed of a workspace. It may be stored and used at any later time. Its format is opaque,
// except that "" is the beginning of the feed.
type Cursor string

// FeedEvent is an event of the feed. A read after its Cursor continues with the
// next event.
type FeedEvent struct {
	Event
	Cursor Cursor
}

// ReadFeed iterates over the events of the feed after a cursor, in order, up to the current end of the feed. A reader
// that continues after the last Cursor sees each event once and misses none. Events that were removed from their
// streams are skipped. If the feed never returned the cursor, ReadFeed returns [holdfast.ErrValidation], and if
// the workspace has no feed, [holdfast.ErrNotFound].
func ReadFeed(ctx context.Context, d holdfast.Doer, after Cursor) iter.Seq2[FeedEvent, error] {
	return store.SeqIn(func() error { return feed.Exists(ctx, store.DoerOf(d)) }, func(last feed.Item, limit int) ([]feed.Item, error) {
		position, err := last.Position, error(nil)
		if position == 0 {
			if position, err = feed.ParseCursor(string(after)); err != nil {
				return nil, err
			}
		}
		page, err := feed.Read(ctx, store.DoerOf(d), position, limit)
		return page.Items, err
	}, feedEvent)
}

func feedEvent(i feed.Item) FeedEvent { return FeedEvent{public(i.Event), cursor(i.Position)} }

// GetFeedHead returns the cursor at the current end of the feed. Events that get a position later come after it. If the
// workspace has no feed, the error is [holdfast.ErrNotFound].
func GetFeedHead(ctx context.Context, d holdfast.Doer) (Cursor, error) {
	last, err := feed.Head(ctx, store.DoerOf(d))
	if err == nil && last == 0 {
		err = feed.Exists(ctx, store.DoerOf(d))
	}
	return cursor(last), err
}

// GetFeedCursor returns the cursor of an event in the feed. If the event has no position yet or does not exist, the
// error is [holdfast.ErrNotFound].
func GetFeedCursor(ctx context.Context, d holdfast.Doer, stream string, version Version) (Cursor, error) {
	position, err := feed.PositionOf(ctx, store.DoerOf(d), stream, int64(version))
	if err == nil && position == 0 {
		err = fault.New(fault.NotFound, "event %d of stream %q has no position in the feed", version, stream)
	}
	return cursor(position), err
}

// FollowFeed yields every event of the feed after a cursor, and then each new one. It ends when the loop breaks, ctx
// ends, or a read is refused; in the last two cases, the last pair contains the error. To continue later, store the
// Cursor of the last event that was handled.
//
// FollowFeed wakes at commits of this engine and, while the engine runs, of other nodes; it also polls every second or
// two. While the database is unreachable, FollowFeed keeps retrying. If the workspace has no feed, and the engine was opened
// without [Feed], the error is [holdfast.ErrNotFound].
func FollowFeed(ctx context.Context, e *holdfast.Engine, after Cursor) iter.Seq2[FeedEvent, error] {
	return func(yield func(FeedEvent, error) bool) {
		if err := follow(ctx, e, after, yield); err != nil {
			yield(FeedEvent{}, err)
		}
	}
}

// follow yields events. It returns nil if the caller left the loop, and otherwise the error that ended it.
func follow(ctx context.Context, e *holdfast.Engine, after Cursor, yield func(FeedEvent, error) bool) error {
	position, err := feed.ParseCursor(string(after))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	left := false // by the caller; nothing may be yielded after that
	read := store.NewBudget(followBytes)
	p := wake.Poller{Hub: engine.Of(e).Hub(), Topics: []string{feed.Topic(store.WorkspaceOf(ctx))}, Log: engine.Of(e).Reactions().Log,
		Poll: func(ctx context.Context) (bool, error) {
			if err := feed.OpenIfEnabled(ctx, engine.Of(e)); err != nil { // the workspace may be created later
				return false, err
			}
			read.Refill()
			page, err := feed.Read(read.In(ctx), engine.Of(e), position, read.Rows(events.MaxRead))
			if err == nil && position == 0 && len(page.Items) == 0 && !feed.Enabled(engine.Of(e)) {
				err = feed.Exists(ctx, engine.Of(e))
			}
			if err != nil {
				if !passing(err) {
					stop(err)
				}
				return false, err
			}
			for _, i := range page.Items {
				if ctx.Err() != nil {
					return true, nil
				}
				if left = !yield(feedEvent(i), nil); left {
					stop(nil)
					return true, nil
				}
				position = i.Position
			}
			position = page.Next
			return len(page.Items) > 0, nil
		}}
	p.Run(ctx)
	if left {
		return nil
	}
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

func cursor(position int64) Cursor { return Cursor(feed.Cursor(position)) }
