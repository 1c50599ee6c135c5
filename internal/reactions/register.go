package reactions

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Engine runs single commands, and several commands in one transaction.
type Engine interface {
	store.Doer
	Update(context.Context, func(context.Context, *store.Tx) error) error
}

// Register creates or changes a reaction in the context's workspace, and reports
// whether it was created. Registering the same definition again changes nothing.
//
// One transaction writes the reaction, raises the revision of the registry and
// scans the existing streams. Every append that begins after its commit writes
// due notices for the reaction. Appends that began before may not know of the
// reaction, and no scan sees them until they commit. The transactions in flight
// at the commit are therefore recorded, and once all of them have ended a second
// scan follows (PostgreSQL only; SQLite has a single writer). The reaction is
// served before that. If this node crashes, any other node finishes the
// registration ([Sweep]).
func Register(ctx context.Context, e Engine, d Definition) (created bool, err error) {
	if err := d.Check(); err != nil {
		return false, err
	}
	d.Options.FromNow = d.FromNow
	for {
		created, err = register(ctx, e, d)
		if fault.CodeOf(err) != fault.OutcomeUnknown || ctx.Err() != nil {
			break // otherwise retry: register reads the current state first
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
		d.Options.FromNow = old[0].Options.FromNow // no stream is added, so it has no effect: keep the stored one
		same := d.Options
		same.Program = same.Program || old[0].Options.Program // update_options.sql never clears it, so its absence is no change
		if old[0].Options == same {
			return false, nil
		}
		return false, updateOptions(ctx, e, old[0], d)
	case len(old) == 1 && old[0].Source() != d.Source():
		return false, fault.New(fault.Conflict,
			"reaction %q cannot switch between user streams and histories: remove it first, or choose another name", d.Name)
	}
	err = e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		created, err = put(ctx, tx, d)
		return err
	})
	return created, err
}

// updateOptions changes the options of a reaction. Nodes cache the handler with
// the registry, so a new handler raises the registry's revision.
func updateOptions(ctx context.Context, e Engine, old Info, d Definition) error {
	return e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if old.Options.Handler != d.Options.Handler {
			if _, err := store.Raise(ctx, tx); err != nil {
				return err
			}
		}
		if _, err := updateOptionsVerb.Do(ctx, tx, d); err != nil {
			return err
		}
		return recordPut(ctx, tx, []Info{old}, d)
	})
}

// recordPut records in the audit that a caller has put a reaction.
func recordPut(ctx context.Context, tx *store.Tx, old []Info, d Definition) error {
	if Kind(d.Name) != "reaction" { // it belongs to a lifecycle or webhook, whose change is recorded
		return nil
	}
	a := audit.Action{Name: "reaction.put", Subject: "reaction/" + d.Name, After: shown(d)}
	if len(old) == 1 && old[0].state != "removed" {
		a.Before = shown(old[0].Definition)
	}
	return audit.RecordRequested(ctx, tx, a)
}

func shown(d Definition) map[string]any {
	return map[string]any{"streams": d.Streams, "events": d.Events, "options": d.Options}
}

// put writes a reaction and scans the existing streams. REQUIRES: a transaction
func put(ctx context.Context, tx *store.Tx, d Definition) (created bool, err error) {
	revision, err := store.Raise(ctx, tx)
	if err != nil {
		return false, err
	}
	if _, err := fenceVerb.Do(ctx, tx, d.Name); err != nil { // until the end of this transaction, no other transaction creates positions of the reaction
		return false, err
	}
	old, err := listVerb.Do(ctx, tx, d.Name)
	if err != nil {
		return false, err
	}
	created = len(old) == 0
	if !created && old[0].state == "removed" { // its removal may be unfinished: start from scratch
		created = true
		at, err := tx.Partition(ctx, store.Write)
		if err == nil {
			err = clear(ctx, tx, at, d.Name)
		}
		if err != nil {
			return false, err
		}
	}
	// The epochs of new positions start at the base, which the reaction's row
	// stores. The registry's revision grows with every registration; shifted by 32
	// bits, it leaves room for 2^32 epochs between two bases. A position that is
	// created again therefore starts above all epochs that were handed out before.
	base := revision << 32
	if _, err := putVerb.Do(ctx, tx, putArgs{d, base}); err != nil {
		return false, err
	}
	if !created {
		// A stream that was created since the last registration may have due
		// notices and no position yet. It must start at its first event, not after its
		// current end.
		if _, err := collectDueOfReactionVerb.Do(ctx, tx, d.Name); err != nil {
			return false, err
		}
		if err := retire(ctx, tx, d); err != nil {
			return false, err
		}
	}
	if err := start(ctx, tx, d, d.FromNow); err != nil {
		return created, err
	}
	return created, recordPut(ctx, tx, old, d)
}

// retire deletes the positions of streams that a reaction no longer follows. If
// it follows them again, it starts with them as with new streams; their epochs
// then start above those of all current holders.
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
		a := deleteUnfollowedArgs{reaction: d.Name}
		for _, p := range all {
			if after = p; !pattern.MatchString(p.Stream) {
				a.Streams = append(a.Streams, p.Stream)
			}
		}
		if len(a.Streams) > 0 {
			if _, err := deleteUnfollowedVerb.Do(ctx, tx, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// page is the number of streams per statement.
const page = 2000

// start records which streams have events that the reaction does not know of yet: it raises the due version of their
// positions, which is the last version that concerns the reaction, and creates missing positions. A new position starts at
// the first stored event or, with skip, after the last one.
func start(ctx context.Context, d store.Doer, def Definition, skip bool) error {
	var pattern *regexp.Regexp
	if def.Streams != "" {
		var err error
		if pattern, err = regexp.Compile(def.Streams); err != nil {
			return err
		}
	}
	verb := listBehindStreamsVerb
	if def.Source() == store.HistoryEvents {
		verb = listBehindHistoriesVerb
	}
	for after := ""; ; {
		heads, err := verb.Do(ctx, d, behindArgs{def.Name, after, page})
		if err != nil || len(heads) == 0 {
			return err
		}
		after = heads[len(heads)-1].stream
		seed := seedPositionsArgs{reaction: def.Name, skip: skip}
		for _, h := range heads {
			if pattern == nil || pattern.MatchString(h.stream) {
				seed.Streams = append(seed.Streams, [2]any{h.stream, h.version})
			}
		}
		if len(seed.Streams) > 0 {
			if _, err := seedPositionsVerb.Do(ctx, d, seed); err != nil {
				return err
			}
		}
		if len(heads) < page {
			return nil
		}
	}
}

// awaitTimeout is how long Register waits for older transactions.
const awaitTimeout = 2 * time.Second

// await waits a moment for older transactions to end. [Sweep] does the rest.
func await(ctx context.Context, d store.Doer, at store.Partition, name string) error {
	begun := clock.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		done, err := Finish(ctx, d, at, name)
		if err != nil || done || clock.Since(begun) > awaitTimeout {
			return err
		}
		if err := clock.Wait(ctx, pause); err != nil {
			return nil // the reaction is registered
		}
	}
}

// waitsForPrepared begins the list of awaited transactions in the second phase of
// the wait. The first phase waits for the transactions that were open at the
// registration. One of them may have been prepared (PREPARE TRANSACTION), which
// removes it from the open transactions before it commits. The second phase
// therefore waits for all prepared transactions.
const waitsForPrepared = `["prepared"`

// Finish finishes a registration with its second scan, or deletes a removed
// reaction, if the transactions that it waits for have ended. It reports whether
// nothing is left to do.
func Finish(ctx context.Context, d store.Doer, at store.Partition, name string) (bool, error) {
	ctx = store.InWorkspace(ctx, at.Workspace)
	if _, err := recordOpenTransactionsVerb.DoAt(ctx, d, at, name); err != nil {
		return false, err
	}
	w, err := countOpenTransactionsVerb.DoAt(ctx, d, at, name)
	if err != nil || w.left > 0 {
		return false, err
	}
	infos, err := listVerb.DoAt(ctx, d, at, name)
	if err != nil || len(infos) == 0 || infos[0].state == "live" {
		return err == nil, err
	}
	if w.waits == "" { // the reaction was changed meanwhile and waits again
		return false, nil
	}
	if !strings.HasPrefix(w.waits, waitsForPrepared) {
		_, err := recordPreparedTransactionsVerb.DoAt(ctx, d, at, awaited{name, w.waits})
		return false, err
	}
	if infos[0].state == "removed" {
		if err := clear(ctx, d, at, name); err != nil {
			return false, err
		}
		n, err := deleteVerb.DoAt(ctx, d, at, awaited{name, w.waits})
		return n == 1, err
	}
	if err := start(ctx, d, infos[0].Definition, false); err != nil {
		return false, err
	}
	n, err := markLiveVerb.DoAt(ctx, d, at, awaited{name, w.waits})
	return n == 1, err
}

// errNoReaction rolls back the removal of a missing reaction, so that the
// registry's revision stays.
var errNoReaction = errors.New("the reaction does not exist")

// Remove removes a reaction and its positions, and reports whether it existed. A
// worker that holds a lease for it can record nothing more.
//
// A command that uses an older registry may still write a due notice for the
// reaction. The reaction is therefore deleted only after the transactions in
// flight at its removal have ended, as with [Register]: here or, if one takes
// longer, by [Sweep].
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
		old, err := listVerb.Do(ctx, tx, name)
		if err != nil {
			return err
		}
		if removed, err = removeVerb.Do(ctx, tx, name); err == nil && !removed {
			err = errNoReaction
		}
		if err != nil || len(old) == 0 {
			return err
		}
		return audit.RecordRequested(ctx, tx, audit.Action{Name: "reaction.delete", Subject: "reaction/" + name, Before: shown(old[0].Definition)})
	})
	if err != nil && !errors.Is(err, errNoReaction) {
		return false, err
	}
	if err := clear(ctx, e, at, name); err != nil {
		return removed, err
	}
	for range 2 { // enough if no other transaction is in flight
		if done, err := Finish(ctx, e, at, name); done || err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// clear deletes the positions and due notices of a removed reaction.
func clear(ctx context.Context, d store.Doer, at store.Partition, name string) error {
	for {
		n, err := deletePositionsVerb.DoAt(ctx, d, at, deletePositionsArgs{name, dropPage})
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}

// finishAll finishes the interrupted registrations and removals of a shard.
func finishAll(ctx context.Context, d store.Doer, at store.Partition) (done int, err error) {
	all, err := listUnfinishedVerb.DoAt(ctx, d, at, sweepLimit)
	for _, u := range all {
		yes, failed := Finish(ctx, d, store.Partition{Shard: at.Shard, Workspace: u[0]}, u[1])
		if yes {
			done++
		}
		err = errors.Join(err, failed)
	}
	return done, err
}
