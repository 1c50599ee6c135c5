// Package feed gives the events of a workspace one order: each committed event
// gets a position, once, after its commit.
//
// # How it is numbered
//
// The feed is a reaction by the name of "$feed" that wants every event of every
// stream of the users'. Nobody holds its streams. Instead whoever numbers holds
// the workspace's row of the table sequence for the length of one statement,
// which numbers a batch: it takes streams on which there is something to do,
// gives their next events the positions after sequence.last, in the order of
// their versions, and moves sequence.last and their watermarks on (on SQLite the
// watermarks a moment later). Positions and their count commit together or not at
// all, so there is nothing that a crash could leave half done, and nothing to be
// freed. Others who come meanwhile go away.
//
// What it guarantees, and why:
//
//   - Nothing is skipped. An append marks its stream for the feed in its own
//     transaction; a transaction that commits late brings its marks late, and
//     its events get positions then. A reader that has seen a position has seen
//     all before it: a batch begins when the one before it is committed.
//   - Nothing is numbered twice. What the feed has of a stream is the truth; the
//     watermark only says where there may be more. So a reset, or a feed that is
//     removed and made again, goes on where the feed ends. A statement that
//     looked at the database before the last batch was committed numbers nothing
//     (PostgreSQL; on SQLite there is one writer).
//   - A stream's events are numbered in their order. Its versions are committed
//     in order, so what a statement sees of a stream has no gap, and a watermark
//     moves to the last version that was really seen.
//
// Rejected: a number that the append itself takes (a sequence's numbers commit
// out of order, and a counter makes every commit wait for every other), and a
// reader that stays behind the oldest transaction (one that hangs stops all).
package feed

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Reaction is the name under which the feed is registered.
const Reaction = "$feed"

// Topic is what the readers of a workspace's feed are woken by.
func Topic(workspace string) string { return "feed/" + workspace }

// Batch bounds what one statement numbers.
type Batch struct {
	Streams int `arg:"streams"`
	Events  int `arg:"events"`
}

// DefaultBatch is small enough that nobody waits long for its commit.
var DefaultBatch = Batch{Streams: 500, Events: 2000}

type sequenceArgs struct {
	workspace string
	Batch
}

var (
	openVerb = store.VerbOf[struct{}](store.Decl{Name: "feed.open", Lane: store.Work, Idempotent: true}, nil,
		func(*struct{}, store.Row) error { return nil })
	sequenceVerb = store.VerbOf[sequenceArgs](store.Decl{Name: "feed.sequence", Lane: store.Work, Idempotent: true}, nil,
		scanSome).Wakes(func(a sequenceArgs) []string { return []string{Topic(a.workspace)} })
	advanceVerb = store.NewVerb(store.Decl{Name: "feed.advance", Lane: store.Work, Idempotent: true}, nil,
		store.IntArg("streams"), scanSome)
)

func scanSome(some *bool, _ store.Row) error {
	*some = true
	return nil
}

// Open switches the feed on in the context's workspace. It is on for good, and
// begins with the first event that is there. The row that counts comes first:
// once the feed is registered, every node may number.
func Open(ctx context.Context, e reactions.Engine) error {
	at, err := e.Partition(ctx, store.Write)
	if err != nil {
		return err
	}
	if _, err := openVerb.DoAt(ctx, e, at, struct{}{}); err != nil {
		return err
	}
	_, err = reactions.Register(ctx, e, reactions.Definition{Name: Reaction, Options: reactions.DefaultOptions()})
	return err
}

// Sequence numbers one batch of a workspace's events, and says whether there was
// something to do. It says no also where somebody else is at it.
func Sequence(ctx context.Context, d store.Doer, at store.Partition, b Batch) (bool, error) {
	numbered, err := sequenceVerb.DoAt(ctx, d, at, sequenceArgs{at.Workspace, b})
	if err != nil {
		return false, err
	}
	moved, err := advanceVerb.DoAt(ctx, d, at, b.Streams)
	return numbered || moved, err
}

// Step numbers one batch of each workspace on a shard that has its turn, and says whether there was
// something to number.
func Step(ctx context.Context, d store.Doer, shard int16, b Batch) (found bool, err error) {
	return step(ctx, d, shard, b, new(lease.Round))
}

func step(ctx context.Context, d store.Doer, shard int16, b Batch, r *lease.Round) (found bool, err error) {
	turns, err := r.Next(ctx, d, reactions.Turns, shard, []string{Reaction}, nil)
	if err != nil {
		return false, err
	}
	found, err = new(reactions.Collector).Next(ctx, d, store.Partition{Shard: shard}, turns)
	if err != nil {
		return found, err
	}
	for _, t := range turns {
		some, failed := Sequence(ctx, d, store.Partition{Shard: shard, Workspace: t.Workspace}, b)
		found, err = found || some, errors.Join(err, failed) // one workspace must not stop the others
	}
	return found || !r.Whole(), err
}

// Sequencer numbers what is committed, on all shards, while it runs. Any number
// of nodes may run one.
type Sequencer struct {
	Doer  store.Doer
	Hub   *wake.Hub
	Log   *slog.Logger
	Batch Batch // the zero value is [DefaultBatch]

	shards  []int16
	rounds  map[int16]*lease.Round
	learned time.Time
}

// Run numbers until ctx ends.
func (s *Sequencer) Run(ctx context.Context) {
	s.rounds = make(map[int16]*lease.Round)
	if s.Batch == (Batch{}) {
		s.Batch = DefaultBatch
	}
	p := wake.Poller{Hub: s.Hub, Topics: []string{store.DueTopic(Reaction)}, Poll: s.look, Log: s.Log,
		WorkKinds: func() []wake.WorkKind { return wake.WorkKinds(wake.Reaction, Reaction) }}
	p.Run(ctx)
}

func (s *Sequencer) look(ctx context.Context) (found bool, err error) {
	if err := s.refresh(ctx); err != nil {
		return false, err
	}
	for _, shard := range s.shards {
		if s.rounds[shard] == nil {
			s.rounds[shard] = new(lease.Round)
		}
		some, failed := step(ctx, s.Doer, shard, s.Batch, s.rounds[shard])
		found, err = found || some, errors.Join(err, failed)
	}
	return found, err
}

// relearn is how often a sequencer asks which shards there are.
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
