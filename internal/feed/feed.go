// Package feed puts the events of a workspace into one order: each committed event gets a position, once, after
// its commit.
//
// # How events are numbered
//
// The feed is a reaction named "$feed" that wants every event of every user stream. Its streams are not leased.
// Instead the sequencer locks the workspace's row of the table sequence for the length of one statement, which
// numbers a batch of events: it takes streams that have work, gives their next events the positions after
// sequence.last, in the order of their versions, and advances sequence.last and the watermarks (on SQLite the
// watermarks a moment later). Positions and their count commit together or not at all, so a crash leaves nothing
// half done and nothing to release. A sequencer that finds the row locked gives up.
//
// Guarantees, and why they hold:
//
//   - Nothing is skipped. An append writes a due notice of its stream for the feed in its own transaction; a
//     transaction that commits late brings its notices late, and its events get positions then. A reader that
//     has seen a position has seen all before it: a batch begins after the previous one is committed.
//   - Nothing is numbered twice. The feed's own entries of a stream are authoritative; the watermark only says
//     where there may be more. A reset, or a feed that is removed and created again, continues where the feed
//     ends. A statement whose snapshot is older than the commit of the last batch numbers nothing (PostgreSQL;
//     SQLite has one writer).
//   - A stream's events are numbered in their order. Its versions are committed in order, so a statement sees
//     no gap in a stream, and a watermark moves to the last version that was really seen.
//
// Rejected: a number taken by the append itself (a sequence's numbers commit out of order, and a counter makes
// every commit wait for every other), and a reader that stays behind the oldest transaction (one hanging
// transaction stops all readers).
package feed

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Reaction is the name under which the feed is registered.
const Reaction = "$feed"

// Topic returns the topic that wakes the readers of a workspace's feed.
func Topic(workspace string) string { return "feed/" + workspace }

// Batch limits what one statement numbers.
type Batch struct {
	Streams int `arg:"streams"`
	Events  int `arg:"events"`
}

// DefaultBatch is small enough that its commit is fast.
var DefaultBatch = Batch{Streams: 500, Events: 2000}

type assignPositionsArgs struct {
	workspace string
	Batch
}

var (
	createCounterVerb = store.VerbOf[struct{}](store.Decl{Name: "feed.create_counter", Lane: store.Work, Idempotent: true}, nil,
		func(*struct{}, store.Row) error { return nil })
	assignPositionsVerb = store.VerbOf[assignPositionsArgs](store.Decl{Name: "feed.assign_positions", Lane: store.Work, Idempotent: true}, nil,
		scanProgress).Wakes(func(a assignPositionsArgs) []string { return []string{Topic(a.workspace)} })
	advanceWatermarksVerb = store.NewVerb(store.Decl{Name: "feed.advance_watermarks", Lane: store.Work, Idempotent: true}, nil,
		store.IntArg("streams"), scanProgress)
)

// progress is what a statement did.
type progress struct {
	rows int
	more bool // it reached a limit
}

func scanProgress(p *progress, r store.Row) error {
	var more bool
	err := r.Scan(&more)
	p.rows, p.more = p.rows+1, p.more || more
	return err
}

// Open enables the feed in the context's workspace, permanently and from the first stored event on. The
// sequence row comes first: once the feed is registered, every node may number.
func Open(ctx context.Context, e reactions.Engine) error {
	at, err := e.Partition(ctx, store.Write)
	if err != nil {
		return err
	}
	if _, err := createCounterVerb.DoAt(ctx, e, at, struct{}{}); err != nil {
		return err
	}
	_, err = reactions.Register(ctx, e, reactions.Definition{Name: Reaction, Options: reactions.DefaultOptions()})
	return err
}

// Engine is what the feed uses of an engine.
type Engine interface {
	reactions.Engine
	Shared(key any, make func() any) any
}

// feeds is the feed state of an engine.
type feeds struct {
	on   atomic.Bool // the engine assigns positions
	open sync.Map    // workspaces whose feed is known to be on
}

type feedsKey struct{}

func feedsOf(e Engine) *feeds {
	return e.Shared(feedsKey{}, func() any { return new(feeds) }).(*feeds)
}

// Enable records that the engine assigns positions.
func Enable(e Engine) { feedsOf(e).on.Store(true) }

// Enabled reports whether the engine assigns positions.
func Enabled(e Engine) bool { return feedsOf(e).on.Load() }

// OpenIfEnabled switches the feed on in the context's workspace, if the engine assigns positions and the workspace
// exists. A workspace is created by the first write to it.
func OpenIfEnabled(ctx context.Context, e Engine) error {
	f, space := feedsOf(e), store.WorkspaceOf(ctx)
	if _, known := f.open.Load(space); known || !f.on.Load() {
		return nil
	}
	if there, err := store.WorkspaceNamed(ctx, e, space); err != nil || there == nil {
		return err
	}
	_, err := reactions.Get(ctx, e, Reaction)
	if fault.CodeOf(err) == fault.NotFound {
		err = Open(ctx, e)
	}
	if err == nil {
		f.open.Store(space, true)
	}
	return err
}

// Sequence numbers one batch of a workspace's events, and reports whether there was work. It also returns false
// if another node is numbering.
func Sequence(ctx context.Context, d store.Doer, at store.Partition, b Batch) (bool, error) {
	found, _, err := sequence(ctx, d, at, b)
	return found, err
}

// sequence also reports whether the batch was full.
func sequence(ctx context.Context, d store.Doer, at store.Partition, b Batch) (found, more bool, err error) {
	numbered, err := assignPositionsVerb.DoAt(ctx, d, at, assignPositionsArgs{at.Workspace, b})
	if err != nil {
		return false, false, err
	}
	moved, err := advanceWatermarksVerb.DoAt(ctx, d, at, b.Streams)
	return numbered.rows+moved.rows > 0, numbered.more || moved.more || moved.rows >= b.Streams, err
}

// Step numbers one batch of each workspace on a shard that has its turn, and reports whether there was work.
func Step(ctx context.Context, d store.Doer, shard int16, b Batch) (found bool, err error) {
	found, _, err = step(ctx, d, shard, b, new(lease.Round))
	return found, err
}

// step also reports whether it left work because of a limit.
func step(ctx context.Context, d store.Doer, shard int16, b Batch, r *lease.Round) (found, more bool, err error) {
	turns, err := r.Next(ctx, d, reactions.Turns, shard, []string{Reaction}, nil)
	if err != nil {
		return false, false, err
	}
	var due reactions.Collector
	found, err = due.Next(ctx, d, store.Partition{Shard: shard}, turns)
	if err != nil {
		return found, false, err
	}
	more = due.Full() || !r.Whole()
	for _, t := range turns {
		some, full, failed := sequence(ctx, d, store.Partition{Shard: shard, Workspace: t.Workspace}, b)
		found, more, err = found || some, more || full, errors.Join(err, failed) // a failing workspace must not stop the others
	}
	return found || !r.Whole(), more, err
}

// Sequencer numbers committed events on all shards while it runs. Any number of nodes may run one.
type Sequencer struct {
	Doer  store.Doer
	Hub   *wake.Hub
	Log   *slog.Logger
	Batch Batch // the zero value is [DefaultBatch]

	shards  []int16
	rounds  map[int16]*lease.Round
	learned time.Time
	begun   time.Time // the last poll
	behind  bool      // the last poll left work because of a limit
}

// pace is the shortest time between two polls of a sequencer while no reader waits for the feed on its node.
// Without it, a sequencer under load numbers a few events at a time, as often as it can: that takes a third of the
// database's time, and the readers of pages see no difference. A reader that follows the feed, on any node, makes
// the sequencer of that node number at once. A full batch is followed by the next at once, too.
const pace = 50 * time.Millisecond

// Run numbers events until ctx ends.
func (s *Sequencer) Run(ctx context.Context) {
	s.rounds = make(map[int16]*lease.Round)
	if s.Batch == (Batch{}) {
		s.Batch = DefaultBatch
	}
	p := wake.Poller{Hub: s.Hub, Topics: []string{store.DueTopic(Reaction)}, Poll: s.poll, Log: s.Log,
		WorkKinds: s.WorkKinds}
	p.Run(ctx)
}

// WorkKinds returns the work that the sequencer serves.
func (s *Sequencer) WorkKinds() []wake.WorkKind { return wake.WorkKinds(wake.Reaction, Reaction) }

// Step numbers one batch of a workspace's events.
func (s *Sequencer) Step(ctx context.Context, at store.Partition) (found bool, err error) {
	found, err = reactions.CollectDue(ctx, s.Doer, at, []string{Reaction})
	if err != nil {
		return found, err
	}
	some, err := Sequence(ctx, s.Doer, at, DefaultBatch)
	return found || some, err
}

func (s *Sequencer) poll(ctx context.Context) (found bool, err error) {
	if wait := pace - clock.Since(s.begun); wait > 0 && !s.behind && !s.Hub.Waiting(Topic("")) {
		if err := clock.Wait(ctx, wait); err != nil {
			return false, err
		}
	}
	s.begun, s.behind = clock.Now(), false
	if err := s.refresh(ctx); err != nil {
		return false, err
	}
	for _, shard := range s.shards {
		if s.rounds[shard] == nil {
			s.rounds[shard] = new(lease.Round)
		}
		some, more, failed := step(ctx, s.Doer, shard, s.Batch, s.rounds[shard])
		found, err = found || some, errors.Join(err, failed)
		s.behind = s.behind || more
	}
	return found, err
}

// relearn is how often a sequencer reloads the shards in use.
const relearn = 10 * time.Second

func (s *Sequencer) refresh(ctx context.Context) error {
	if s.shards != nil && clock.Since(s.learned) < relearn {
		return nil
	}
	shards, err := store.Shards(ctx, s.Doer)
	if err == nil {
		s.shards, s.learned = shards, clock.Now()
	}
	return err
}

// Exists returns [fault.NotFound] if the context's workspace has no feed.
func Exists(ctx context.Context, d store.Doer) error {
	_, err := reactions.Get(ctx, d, Reaction)
	if fault.CodeOf(err) == fault.NotFound {
		err = fault.New(fault.NotFound, "workspace %q has no feed: pass stream.Feed to holdfast.Open, with this workspace in its options", store.WorkspaceOf(ctx))
	}
	return err
}
