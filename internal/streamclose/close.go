package streamclose

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// closer closes the books of one stream once.
type closer struct {
	Args
	engine Engine
	at     store.Partition
	holder string // of this call alone, so that it knows its own hold again
}

// Close closes the books of a stream. The same close again gives the same answer.
// A stream that is at another version than the close covers is a
// [fault.Concurrency]. One that a reaction still needs is a [fault.Conflict] that
// names the reactions, and stays open; so is one that somebody else is closing.
func Close(ctx context.Context, e Engine, a Args) (Closed, error) {
	if err := check(&a); err != nil {
		return Closed{}, err
	}
	at, err := e.Partition(ctx, store.Read)
	if err != nil {
		return Closed{}, err
	}
	c := &closer{Args: a, engine: e, at: at, holder: "close-" + store.NewID().String()}
	var closed Closed
	if a.Export == nil {
		closed, err = update(ctx, e, c.atOnce)
	} else {
		closed, err = c.inSteps(ctx)
	}
	if err != nil {
		return Closed{}, fmt.Errorf("close %s: %w", a.Stream, err)
	}
	return closed, nil
}

// maxAttempts is how often a transaction is run whose outcome is unknown each time.
const maxAttempts = 8

// update runs f in a transaction. Where it is not known whether that committed,
// it is run again: f locks the row that it has changed, so that it waits for the
// transaction in doubt, and finds there what it did.
func update[T any](ctx context.Context, e Engine, f func(context.Context, *store.Tx) (T, error)) (out T, err error) {
	for range maxAttempts {
		err = e.Update(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
			out, err = f(ctx, tx)
			return err
		})
		if fault.CodeOf(err) != fault.OutcomeUnknown || ctx.Err() != nil {
			break
		}
	}
	return out, err
}

// atOnce is the guard and the end in one transaction.
func (c *closer) atOnce(ctx context.Context, tx *store.Tx) (Closed, error) {
	s, done, err := c.admit(ctx, tx)
	if err != nil || done {
		return c.answer(s), err
	}
	return c.end(ctx, tx, s, nil)
}

// inSteps closes the stream around an export. Whatever fails after the guard
// opens the stream again, a panic of the export included.
func (c *closer) inSteps(ctx context.Context) (closed Closed, err error) {
	g, err := update(ctx, c.engine, c.guard)
	if err != nil || g.done {
		return c.answer(g.standing), err
	}
	finished := false
	defer func() {
		if finished {
			return
		}
		if failed := c.release(ctx, g.Epoch); failed != nil {
			err = errors.Join(err, failed)
		}
	}()
	if err := c.export(ctx, g); err != nil {
		return Closed{}, err
	}
	closed, err = update(ctx, c.engine, func(ctx context.Context, tx *store.Tx) (Closed, error) {
		return c.finish(ctx, tx, g.Epoch)
	})
	finished = err == nil
	return closed, err
}

// guarded is a stream in the hands of its closer, or one that needs none.
type guarded struct {
	standing
	lease.Lease
	done bool
}

// guard takes the stream, so that nothing is appended any more.
func (c *closer) guard(ctx context.Context, tx *store.Tx) (g guarded, err error) {
	g.standing, g.done, err = c.admit(ctx, tx)
	if err != nil || g.done {
		return g, err
	}
	if c.mine(g.standing) { // the answer to an earlier try was lost
		g.Lease = lease.Lease{Epoch: g.epoch, Until: g.until}
		return g, nil
	}
	if _, err := ready(ctx, tx, c.at, c.Stream, math.MaxInt64); err != nil {
		return g, err
	}
	taken, err := takeVerb.DoAt(ctx, tx, c.at, takeArgs{c.Stream, c.holder, c.Lease})
	if err == nil && len(taken) == 0 {
		err = fault.New(fault.Internal, "a stream that is locked was taken by somebody else")
	}
	if err != nil {
		return g, err
	}
	g.Lease = taken[0]
	return g, nil
}

// export has the caller keep the events elsewhere while the hold is renewed.
func (c *closer) export(ctx context.Context, g guarded) error {
	k := lease.Renewer{Lease: c.Lease, Timeout: c.Timeout, Renew: func(ctx context.Context) error {
		until, err := renewVerb.DoAt(ctx, c.engine, c.at, renewArgs{c.Stream, g.Epoch, c.Lease})
		if err == nil && len(until) == 0 {
			err = lease.Lost("the stream "+c.Stream, g.Epoch)
		}
		return err
	}}
	body := k.Start(ctx)
	defer k.Stop()
	err := c.Export(body, g.first, g.head)
	if err != nil && ctx.Err() == nil && body.Err() != nil {
		err = errors.Join(err, context.Cause(body))
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// finish ends what was begun under an epoch.
func (c *closer) finish(ctx context.Context, tx *store.Tx, epoch int64) (Closed, error) {
	s, err := lock(ctx, tx, c.at, c.Stream)
	if err != nil {
		return Closed{}, err
	}
	if s.epoch == epoch { // the answer to an earlier try may have been lost
		if done, err := c.already(ctx, tx, s); err != nil || done {
			return c.answer(s), err
		}
	}
	if s.state != "closing" || s.epoch != epoch || !s.live {
		return Closed{}, lease.Lost("the stream "+c.Stream, epoch)
	}
	return c.end(ctx, tx, s, &epoch)
}

// release opens the stream again, if this closer still has it. It does so also
// when the caller has gone.
func (c *closer) release(ctx context.Context, epoch int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Lease)
	defer cancel()
	_, err := openVerb.DoAt(ctx, c.engine, c.at, openArgs{stream: c.Stream, epoch: epoch})
	return err
}

// admit locks the stream and says whether this closer may have it, or has no more
// to do.
func (c *closer) admit(ctx context.Context, tx *store.Tx) (s standing, done bool, err error) {
	if s, err = lock(ctx, tx, c.at, c.Stream); err != nil {
		return s, false, err
	}
	if done, err = c.already(ctx, tx, s); err != nil || done || c.mine(s) {
		return s, done, err
	}
	switch {
	case s.state == "closed":
		return s, false, fault.New(fault.Conflict, "the stream %s is closed already, by %s at version %d", c.Stream, s.closed, s.covered()).
			With("mode", string(s.closed)).With("lastVersion", s.head)
	case s.live:
		return s, false, s.busy(c.Stream)
	case c.ExpectVersion != nil && *c.ExpectVersion != s.head:
		return s, false, c.outdated(s)
	}
	return s, false, nil
}

// mine says whether the stream is in the hands of this very closer.
func (c *closer) mine(s standing) bool { return s.live && s.holder == c.holder }

// already says whether this close was done before: then it has the same answer. The
// snapshot of a restart is the first event of the stream, behind the version that
// it covers.
func (c *closer) already(ctx context.Context, tx *store.Tx, s standing) (bool, error) {
	if s.state == "closed" {
		return s.closed == c.Mode && (c.ExpectVersion == nil || *c.ExpectVersion == s.covered()), nil
	}
	if c.Mode != Restart || s.first != *c.ExpectVersion+1 {
		return false, nil
	}
	first, err := events.Read(ctx, tx, events.ReadArgs{Stream: c.Stream, From: s.first, Limit: 1})
	return len(first) == 1 && first[0].Name == SnapshotEvent && strictjson.Equal(first[0].Data, c.Snapshot), err
}

// outdated is the refusal of a close that covers another version than the stream
// is at.
func (c *closer) outdated(s standing) *fault.Error {
	todo := "read it to its end"
	if c.Mode == Restart {
		todo += ", make the snapshot anew"
	}
	return fault.New(fault.Concurrency, "the stream %s is at version %d, and this close covers version %d: %s and close it at the last version read", c.Stream, s.head, *c.ExpectVersion, todo).
		With("expectedVersion", *c.ExpectVersion).With("lastVersion", s.head)
}

// end closes the stream, or starts it again, where no reaction needs it any more.
// Where the registry changes after the reactions were looked at, the event is
// marked for reactions that were not: then all of it is done again.
func (c *closer) end(ctx context.Context, tx *store.Tx, s standing, epoch *int64) (Closed, error) {
	revision, err := ready(ctx, tx, c.at, c.Stream, math.MaxInt64)
	if err != nil {
		return Closed{}, err
	}
	if s, err = c.write(ctx, tx, s, epoch); err != nil {
		return Closed{}, err
	}
	g, err := tx.Registry(ctx, c.at, false)
	if err == nil && g.Revision != revision {
		err = fault.New(fault.Unavailable, "a reaction was registered meanwhile").Repeatable()
	}
	return c.answer(s), err
}

// write makes the stream what it will be.
func (c *closer) write(ctx context.Context, tx *store.Tx, s standing, epoch *int64) (standing, error) {
	a := endArgs{c.Stream, epoch}
	var applied bool
	if c.Mode == Archive {
		r, err := archiveVerb.DoAt(ctx, tx, c.at, a)
		if err != nil {
			return s, err
		}
		applied = len(r) > 0
	} else {
		by := replaceArgs{a, c.Mode, SnapshotEvent, c.Snapshot}
		if c.Mode == Tombstone {
			by.name, by.data = TombstoneEvent, []byte("{}")
		}
		r, err := replaceVerb.DoAt(ctx, tx, c.at, by)
		if err != nil {
			return s, err
		}
		applied, s.first, s.head = r.applied, r.head, r.head
	}
	if !applied { // the hold has run out since the row was locked
		return s, lease.Lost("the stream "+c.Stream, s.epoch)
	}
	return s, nil
}

// answer tells what the close left. What was appended behind a snapshot since is
// not part of it.
func (c *closer) answer(s standing) Closed {
	if c.Mode == Restart {
		s.head = s.first
	}
	return Closed{Stream: c.Stream, Mode: c.Mode, First: s.first, Last: s.head}
}
