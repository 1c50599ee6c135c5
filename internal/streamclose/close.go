package streamclose

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// closer closes one stream once.
type closer struct {
	Args
	engine Engine
	at     store.Partition
	holder string // unique to this call, so that it recognizes its own lease
}

// Close closes a stream. Repeating the same close returns the same result. It
// returns [fault.Concurrency] if the stream is not at the version that the close
// covers. It returns [fault.Conflict] and leaves the stream open if a reaction
// still needs events, which the error names, or if another close is in progress.
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
		err = refusals.Note(ctx, e, refusals.Try{Stream: a.Stream, Action: "close"}, err)
		return Closed{}, fmt.Errorf("close %s: %w", a.Stream, err)
	}
	return closed, nil
}

// maxAttempts is the number of attempts at a transaction whose outcome stays unknown.
const maxAttempts = 8

// update runs f in a transaction, and again if the outcome of the commit is
// unknown. That is safe: f locks the row that it changes, so it waits for the
// uncertain transaction and sees its result.
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

// atOnce runs the guard and the end in one transaction.
func (c *closer) atOnce(ctx context.Context, tx *store.Tx) (Closed, error) {
	s, done, err := c.admit(ctx, tx)
	if err != nil || done {
		return c.result(s), err
	}
	return c.end(ctx, tx, s, nil)
}

// inSteps closes the stream around an export. Any failure after the guard, a
// panic of the export included, reopens the stream.
func (c *closer) inSteps(ctx context.Context) (closed Closed, err error) {
	g, err := update(ctx, c.engine, c.guard)
	if err != nil || g.done {
		return c.result(g.headRow), err
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

// guarded is a stream that its closer has leased, or one that is closed already.
type guarded struct {
	headRow
	lease.Lease
	done bool
}

// guard leases the stream, so that appends are refused.
func (c *closer) guard(ctx context.Context, tx *store.Tx) (g guarded, err error) {
	g.headRow, g.done, err = c.admit(ctx, tx)
	if err != nil || g.done {
		return g, err
	}
	if c.heldHere(g.headRow) { // the response to an earlier attempt was lost
		g.Lease = lease.Lease{Epoch: g.epoch, Until: g.until}
		return g, nil
	}
	if _, err := ready(ctx, tx, c.at, c.Stream, math.MaxInt64); err != nil {
		return g, err
	}
	taken, err := takeVerb.DoAt(ctx, tx, c.at, takeArgs{c.Stream, c.holder, c.Lease})
	if err == nil && len(taken) == 0 {
		err = fault.New(fault.Internal, "the stream was leased by another closer although its row is locked")
	}
	if err != nil {
		return g, err
	}
	g.Lease = taken[0]
	return g, nil
}

// export runs the caller's export while the lease is renewed.
func (c *closer) export(ctx context.Context, g guarded) error {
	k := lease.Renewer{Lease: c.Lease, Timeout: c.Timeout, Renew: func(ctx context.Context) error {
		until, err := renewVerb.DoAt(ctx, c.engine, c.at, renewArgs{c.Stream, g.Epoch, c.Lease})
		if err == nil && len(until) == 0 {
			err = lease.Lost("stream "+c.Stream, g.Epoch)
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

// finish runs the end of a close that was begun under an epoch.
func (c *closer) finish(ctx context.Context, tx *store.Tx, epoch int64) (Closed, error) {
	s, err := lock(ctx, tx, c.at, c.Stream)
	if err != nil {
		return Closed{}, err
	}
	if s.epoch == epoch { // the response to an earlier attempt may have been lost
		if done, err := c.alreadyClosed(ctx, tx, s); err != nil || done {
			return c.result(s), err
		}
	}
	if s.state != "closing" || s.epoch != epoch || !s.live {
		return Closed{}, lease.Lost("stream "+c.Stream, epoch)
	}
	return c.end(ctx, tx, s, &epoch)
}

// release reopens the stream if this closer still holds its lease, even if the
// caller's context has ended.
func (c *closer) release(ctx context.Context, epoch int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Lease)
	defer cancel()
	_, err := reopenVerb.DoAt(ctx, c.engine, c.at, reopenArgs{stream: c.Stream, epoch: epoch})
	return err
}

// admit locks the stream and checks that this closer may take it. done is true if
// this close is done already.
func (c *closer) admit(ctx context.Context, tx *store.Tx) (s headRow, done bool, err error) {
	if s, err = lock(ctx, tx, c.at, c.Stream); err != nil {
		return s, false, err
	}
	if done, err = c.alreadyClosed(ctx, tx, s); err != nil || done || c.heldHere(s) {
		return s, done, err
	}
	switch {
	case s.state == "closed":
		return s, false, fault.New(fault.Conflict, "stream %q is already closed (%s) at version %d", c.Stream, s.closed, s.covered()).
			With("mode", string(s.closed)).With("lastVersion", s.head)
	case s.live:
		return s, false, s.busyError(c.Stream)
	case c.ExpectVersion != nil && *c.ExpectVersion != s.head:
		return s, false, c.outdatedError(s)
	}
	return s, false, nil
}

// heldHere reports whether this closer holds the lease of the stream.
func (c *closer) heldHere(s headRow) bool { return s.live && s.holder == c.holder }

// alreadyClosed reports whether this close was done before; then it returns the
// same result. The snapshot of a restart is the first event of the stream, right
// after the version that it covers.
func (c *closer) alreadyClosed(ctx context.Context, tx *store.Tx, s headRow) (bool, error) {
	if s.state == "closed" {
		return s.closed == c.Mode && (c.ExpectVersion == nil || *c.ExpectVersion == s.covered()), nil
	}
	if c.Mode != Restart || s.first != *c.ExpectVersion+1 {
		return false, nil
	}
	first, err := events.Read(ctx, tx, events.ReadArgs{Stream: c.Stream, From: s.first, Limit: 1})
	return len(first) == 1 && first[0].Name == SnapshotEvent && strictjson.Equal(first[0].Data, c.Snapshot), err
}

// outdatedError returns the error of a close that covers another version than the
// stream's.
func (c *closer) outdatedError(s headRow) *fault.Error {
	todo := "read the stream to its end"
	if c.Mode == Restart {
		todo += ", make a new snapshot"
	}
	return fault.New(fault.Concurrency, "stream %q is at version %d, but this close covers version %d: %s, and close the stream at the last version that you read", c.Stream, s.head, *c.ExpectVersion, todo).
		With("expectedVersion", *c.ExpectVersion).With("lastVersion", s.head)
}

// end closes or restarts the stream if no reaction needs it any more. If the
// registry changes after the reactions were checked, the event that it writes may
// have a due notice for a reaction that was not checked; then the transaction is
// retried.
func (c *closer) end(ctx context.Context, tx *store.Tx, s headRow, epoch *int64) (Closed, error) {
	revision, err := ready(ctx, tx, c.at, c.Stream, math.MaxInt64)
	if err != nil {
		return Closed{}, err
	}
	if s, err = c.write(ctx, tx, s, epoch); err != nil {
		return Closed{}, err
	}
	g, err := tx.Registry(ctx, c.at, false)
	if err == nil && g.Revision != revision {
		err = fault.New(fault.Unavailable, "a reaction was registered concurrently: try again").AsRetryable()
	}
	return c.result(s), err
}

// write archives the stream, or replaces its events.
func (c *closer) write(ctx context.Context, tx *store.Tx, s headRow, epoch *int64) (headRow, error) {
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
	if !applied { // the lease expired after the row was locked
		return s, lease.Lost("stream "+c.Stream, s.epoch)
	}
	return s, nil
}

// result returns the result of the close. Events appended after a snapshot are
// not part of it.
func (c *closer) result(s headRow) Closed {
	if c.Mode == Restart {
		s.head = s.first
	}
	return Closed{Stream: c.Stream, Mode: c.Mode, First: s.first, Last: s.head}
}
