package reactions

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Engine is what registering needs: commands by themselves, and several in one
// transaction.
type Engine interface {
	store.Doer
	Update(context.Context, func(context.Context, *store.Tx) error) error
}

// Register makes a reaction, or changes one, in the context's workspace, and
// says whether it was made. Registering the same again changes nothing.
//
// The reaction and the raised revision of the registry are one transaction, and
// so is the first look at the streams that are there. From its commit on, every
// append that begins marks what concerns the reaction. Appends that began before
// may still write without knowing of it, and be seen by no look until they
// commit. So the transactions that were under way at the commit are noted, and
// once they have all ended there is a second look (PostgreSQL; on SQLite there is
// one writer). Until then the reaction is served already. If this node dies, any
// other finishes it ([Sweep]).
func Register(ctx context.Context, e Engine, d Definition) (created bool, err error) {
	if err := d.Check(); err != nil {
		return false, err
	}
	d.Options.FromNow = d.FromNow
	for {
		created, err = register(ctx, e, d)
		if fault.CodeOf(err) != fault.OutcomeUnknown || ctx.Err() != nil {
			break // it may be repeated: it looks at what is there first
		}
	}
	if err != nil {
		return created, err
	}
	at, err := e.Partition(ctx, store.Write)
	if err != nil {
		return created, err
	}
	return created, await(ctx, e, at, d.Name)
}

func register(ctx context.Context, e Engine, d Definition) (created bool, err error) {
	old, err := listVerb.Do(ctx, e, d.Name)
	switch {
	case err != nil:
		return false, err
	case len(old) == 1 && old[0].state == "removed":
		at, err := e.Partition(ctx, store.Write)
		if err != nil {
			return false, err
		}
		if err := clear(ctx, e, at, d.Name); err != nil {
			return false, err
		}
	case len(old) == 1 && old[0].Same(&d):
		d.Options.FromNow = old[0].Options.FromNow // that is over
		same := d.Options
		same.Program = same.Program || old[0].Options.Program // the statement keeps it
		if old[0].Options == same {
			return false, nil
		}
		return false, updateOptions(ctx, e, old[0], d)
	case len(old) == 1 && old[0].Source() != d.Source():
		return false, fault.New(fault.Conflict,
			"the reaction %q follows users' streams or histories, and cannot go over to the others: remove it first, or choose another name", d.Name)
	}
	err = e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		created, err = put(ctx, tx, d)
		return err
	})
	return created, err
}

// updateOptions changes how a reaction is served. Who serves it is what nodes remember of the
// registry.
func updateOptions(ctx context.Context, e Engine, old Info, d Definition) error {
	if old.Options.Handler == d.Options.Handler {
		_, err := tuneVerb.Do(ctx, e, d)
		return err
	}
	return e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := store.Raise(ctx, tx); err != nil {
			return err
		}
		_, err := tuneVerb.Do(ctx, tx, d)
		return err
	})
}

// put writes a reaction and looks for what concerns it. REQUIRES: a transaction
func put(ctx context.Context, tx *store.Tx, d Definition) (created bool, err error) {
	revision, err := store.Raise(ctx, tx)
	if err != nil {
		return false, err
	}
	if _, err := fenceVerb.Do(ctx, tx, d.Name); err != nil { // nobody gathers for it meanwhile
		return false, err
	}
	old, err := listVerb.Do(ctx, tx, d.Name)
	if err != nil {
		return false, err
	}
	created = len(old) == 0
	if !created && old[0].state == "removed" { // and perhaps waits to be forgotten: it begins anew
		created = true
		at, err := tx.Partition(ctx, store.Write)
		if err == nil {
			err = clear(ctx, tx, at, d.Name)
		}
		if err != nil {
			return false, err
		}
	}
	if _, err := putVerb.Do(ctx, tx, putArgs{d, revision << 32}); err != nil {
		return false, err
	}
	if !created {
		// A stream that was born since then has marks perhaps, and no row
		// yet: it begins at its beginning, and not behind what is there now.
		if _, err := collectOneVerb.Do(ctx, tx, d.Name); err != nil {
			return false, err
		}
		if err := retire(ctx, tx, d); err != nil {
			return false, err
		}
	}
	return created, start(ctx, tx, d, d.FromNow)
}

// retire forgets the streams that a reaction does not follow any more. If it
// should follow them again, it begins with them as with any other; its epochs then
// begin where no holder of now can be.
func retire(ctx context.Context, tx *store.Tx, d Definition) error {
	pattern, err := regexp.Compile(d.Streams)
	if err != nil {
		return err
	}
	for after, more := (Position{}), true; more; {
		var all []Position
		if all, more, err = Query(ctx, tx, Filter{Reaction: d.Name}, after, page); err != nil {
			return err
		}
		a := retireArgs{reaction: d.Name}
		for _, p := range all {
			if after = p; !pattern.MatchString(p.Stream) {
				a.Streams = append(a.Streams, p.Stream)
			}
		}
		if len(a.Streams) > 0 {
			if _, err := retireVerb.Do(ctx, tx, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// page is how many streams are looked at in one statement.
const page = 2000

// start notes every stream on which there is more than a reaction knows of.
func start(ctx context.Context, d store.Doer, def Definition, skip bool) error {
	var pattern *regexp.Regexp
	if def.Streams != "" {
		var err error
		if pattern, err = regexp.Compile(def.Streams); err != nil {
			return err
		}
	}
	verb := behindVerb
	if def.Source() == store.HistoryEvents {
		verb = behindOwnVerb
	}
	for after := ""; ; {
		heads, err := verb.Do(ctx, d, behindArgs{def.Name, after, page})
		if err != nil || len(heads) == 0 {
			return err
		}
		after = heads[len(heads)-1].stream
		seed := seedArgs{reaction: def.Name, skip: skip}
		for _, h := range heads {
			if pattern == nil || pattern.MatchString(h.stream) {
				seed.Streams = append(seed.Streams, [2]any{h.stream, h.version})
			}
		}
		if len(seed.Streams) > 0 {
			if _, err := seedVerb.Do(ctx, d, seed); err != nil {
				return err
			}
		}
		if len(heads) < page {
			return nil
		}
	}
}

// patience is how long a caller who registers waits for older transactions.
const patience = 2 * time.Second

// await gives older transactions a moment to end. What is then left to do is
// done by whoever sweeps.
func await(ctx context.Context, d store.Doer, at store.Partition, name string) error {
	begun := clock.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		done, err := Finish(ctx, d, at, name)
		if err != nil || done || clock.Since(begun) > patience {
			return err
		}
		if err := clock.Wait(ctx, pause); err != nil {
			return nil // it is registered
		}
	}
}

// Finish takes the second look, or forgets a reaction that was removed, if the
// transactions that it waits for have ended, and says whether there is nothing left
// to do.
func Finish(ctx context.Context, d store.Doer, at store.Partition, name string) (bool, error) {
	ctx = store.InWorkspace(ctx, at.Workspace)
	if _, err := awaitVerb.DoAt(ctx, d, at, name); err != nil {
		return false, err
	}
	w, err := endedVerb.DoAt(ctx, d, at, name)
	if err != nil || w.left > 0 {
		return false, err
	}
	infos, err := listVerb.DoAt(ctx, d, at, name)
	if err != nil || len(infos) == 0 || infos[0].state == "live" {
		return err == nil, err
	}
	if w.waits == "" { // it was changed a moment ago, and waits anew
		return false, nil
	}
	if !strings.HasPrefix(w.waits, `["prepared"`) {
		_, err := preparedVerb.DoAt(ctx, d, at, awaited{name, w.waits})
		return false, err
	}
	if infos[0].state == "removed" {
		if err := clear(ctx, d, at, name); err != nil {
			return false, err
		}
		n, err := forgetVerb.DoAt(ctx, d, at, awaited{name, w.waits})
		return n == 1, err
	}
	if err := start(ctx, d, infos[0].Definition, false); err != nil {
		return false, err
	}
	n, err := liveVerb.DoAt(ctx, d, at, awaited{name, w.waits})
	return n == 1, err
}

// errNothing undoes a removal of what is not there: the registry stays as it is.
var errNothing = errors.New("there is no such reaction")

// Remove removes a reaction and everything that is known of where it stands, and
// says whether there was one. A worker that holds a stream for it can record
// nothing more.
//
// A command that went by an older registry may still write a due notice for it. So the
// reaction is forgotten only when the transactions that were under way at its removal have
// ended, as with [Register]: here or, if one takes longer, by [Sweep].
func Remove(ctx context.Context, e Engine, name string) (bool, error) {
	at, err := e.Partition(ctx, store.Write)
	if err != nil {
		return false, err
	}
	removed := false
	err = e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := store.Raise(ctx, tx); err != nil {
			return err
		}
		removed, err = removeVerb.Do(ctx, tx, name)
		if err == nil && !removed {
			err = errNothing
		}
		return err
	})
	if err != nil && !errors.Is(err, errNothing) {
		return false, err
	}
	if err := clear(ctx, e, at, name); err != nil {
		return removed, err
	}
	for range 2 { // enough where nothing else is under way
		if done, err := Finish(ctx, e, at, name); done || err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// clear deletes what a removed reaction has left.
func clear(ctx context.Context, d store.Doer, at store.Partition, name string) error {
	for {
		n, err := dropVerb.DoAt(ctx, d, at, dropArgs{name, dropPage})
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}

// finishAll finishes what registering and removing left unfinished on a shard.
func finishAll(ctx context.Context, d store.Doer, shard int16) (done int, err error) {
	all, err := unfinishedVerb.DoAt(ctx, d, store.Partition{Shard: shard}, sweepLimit)
	for _, u := range all {
		yes, failed := Finish(ctx, d, store.Partition{Shard: shard, Workspace: u[0]}, u[1])
		if yes {
			done++
		}
		err = errors.Join(err, failed)
	}
	return done, err
}
