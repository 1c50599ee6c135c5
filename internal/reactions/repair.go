package reactions

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Position is the position of a reaction on a stream.
type Position struct {
	Reaction, Stream  string
	Own               bool  // the stream is a history
	Watermark         int64 // the last version handled, -1 for none
	Due               int64 // the last version known to concern the reaction
	Head              int64 // the last version of the stream
	Failures, Crashes int
	Lost              int // lost hand-outs in a row
	Blocked           bool
	Error             string
	Failing           int64 // the version that failed, -1 for none
	Holder            string
	Until             time.Time
	DueAt             time.Time // time of the next attempt
	Epoch             int64
	Generation        int64 // number of resets
	Delivered         int64 // the last version that can be acknowledged under the epoch
	Held              bool  // the lease has not expired
	ResetRequested    bool  // the stream is reset when the lease ends
}

// Filter selects positions. The zero value selects all positions.
type Filter struct {
	Reaction string   // "" selects every reaction
	Streams  []string // none selects every stream
	Pattern  string   // of streams (RE2), "" selects every stream
	Own      *bool    // only histories, or only user streams
	Blocked  *bool
	Failing  bool // only positions whose next event has failed and that are not blocked; instead of Blocked
}

type positionArgs struct {
	reaction      string `arg:"reaction"`
	last          string `arg:"last"`
	blocked       *int64 `arg:"blocked"`
	failing       bool   `arg:"failing"`
	afterReaction string `arg:"after_reaction"`
	afterStream   string `arg:"after_stream"`
	limit         int    `arg:"limit"`
}

type repairArgs struct {
	workspace string // of the notice
	reaction  string `arg:"reaction"`
	stream    string `arg:"stream"`
	how       string `arg:"how"`
	actor     string `arg:"actor,null"`
	failing   int64  `arg:"failing"` // the version that must have failed, -1 for any
}

type repaired struct {
	applied   bool
	watermark int64
	holder    string
	dueAt     time.Time
	pending   bool // the reset is requested and happens when the lease ends
}

var (
	positionsVerb = store.VerbOf[positionArgs](store.Decl{Name: "reactions.list_positions", Lane: store.Read}, nil, scanPosition)
	repairVerb    = store.VerbOf[repairArgs](store.Decl{Name: "reactions.repair", Group: true, Events: store.HistoryEvents},
		func(a repairArgs) []string { return []string{key(a.reaction, a.stream)} },
		store.Outcome(func(r *repaired) (*bool, []any) {
			return &r.applied, []any{&r.watermark, &r.holder, &r.dueAt, &r.pending}
		})).RecoverWith(func(repairArgs, store.CommitProof) repaired { return repaired{applied: true} }).
		Wakes(func(a repairArgs) []string {
			return []string{store.DueTopic(a.reaction), notice{What: repairs[a.how], Workspace: a.workspace, Reaction: a.reaction, Stream: a.stream}.topic()}
		}).
		Emits(func(a repairArgs) store.Emission {
			return store.Emission{Stream: Stream(a.reaction, a.stream), Names: []string{repairs[a.how]}}
		})
	rebuildVerb = store.NewVerb(store.Decl{Name: "reactions.rebuild", Lane: store.Work}, nil, store.TextArg("reaction"), store.CountRows)
	fenceVerb   = store.NewVerb(store.Decl{Name: "reactions.fence", Lane: store.Work}, nil, store.TextArg("reaction"), scanTexts)
)

func scanPosition(all *[]Position, row store.Row) error {
	var p Position
	var source string
	err := row.Scan(&p.Reaction, &source, &p.Stream, &p.Watermark, &p.Due, &p.Head, &p.Failures, &p.Crashes, &p.Lost, &p.Blocked, &p.Error,
		&p.Holder, &p.Until, &p.DueAt, &p.Failing, &p.Epoch, &p.Generation, &p.Delivered, &p.Held, &p.ResetRequested)
	if p.Delivered < 0 { // unknown
		p.Delivered = p.Head
	}
	p.Own = source == string(store.HistoryEvents)
	if p.Holder == "" {
		p.Until = time.Time{}
	}
	*all = append(*all, p)
	return err
}

// repairs maps each repair to the name of its event.
var repairs = map[string]string{"unblock": "unblocked", "reset": "reset", "skip": "skipped"}

// Query returns a page of positions, ordered by reaction and stream: those after
// the position after, up to limit. more reports whether others follow.
func Query(ctx context.Context, d store.Doer, f Filter, after Position, limit int) (all []Position, more bool, err error) {
	var pattern *regexp.Regexp
	if pattern, err = f.pattern(); err != nil {
		return nil, false, err
	}
	a := positionArgs{reaction: f.Reaction, last: cmp.Or(f.Reaction, store.Last), failing: f.Failing, afterReaction: cmp.Or(after.Reaction, f.Reaction), afterStream: after.Stream, limit: page}
	if f.Blocked != nil {
		b := store.Bit(*f.Blocked)
		a.blocked = &b
	}
	for {
		rows, err := positionsVerb.Do(ctx, d, a)
		if err != nil {
			return nil, false, err
		}
		for _, p := range rows {
			if !f.chooses(p, pattern) {
				continue
			}
			if len(all) == limit {
				return all, true, nil
			}
			all = append(all, p)
		}
		if len(rows) < a.limit {
			return all, false, nil
		}
		last := rows[len(rows)-1]
		a.afterReaction, a.afterStream = last.Reaction, last.Stream
	}
}

func (f *Filter) pattern() (*regexp.Regexp, error) {
	if f.Pattern == "" {
		return nil, nil
	}
	pattern, err := regexp.Compile(f.Pattern)
	if err != nil {
		return nil, fault.New(fault.Validation, "stream pattern %q is not a valid regular expression (RE2): %s", f.Pattern, err)
	}
	return pattern, nil
}

func (f *Filter) chooses(p Position, pattern *regexp.Regexp) bool {
	return (len(f.Streams) == 0 || slices.Contains(f.Streams, p.Stream)) &&
		(pattern == nil || pattern.MatchString(p.Stream)) && (f.Own == nil || *f.Own == p.Own)
}

// Repair repairs positions for an actor; how is unblock, reset or skip. It returns the
// positions that it changed, in their new state, and the leased positions that it
// did not change. The reset of a leased position is only requested: nothing more
// is delivered under the lease, renewals no longer extend it and tell its holder
// to stop, and the end of the lease resets the stream.
//
// Each position is repaired in a transaction of its own, so a repair of many
// positions may be interrupted and repeated. A filter without a reaction selects
// the reactions, after-effects and webhooks of users. For a reset, which delivers
// events again, it selects only their reactions.
func Repair(ctx context.Context, d store.Doer, how, actor string, f Filter) (touched, held []Position, err error) {
	if err := events.CheckMeta(events.Meta{Actor: actor}); err != nil {
		return nil, nil, err
	}
	if repairs[how] == "" {
		return nil, nil, fault.New(fault.Validation, "a repair must be unblock, reset or skip, got %q", how)
	}
	if how == "unblock" {
		if f.Blocked != nil && !*f.Blocked {
			return nil, nil, fault.New(fault.Validation, "unblock changes only blocked streams, but the filter selects streams that are not blocked: set blocked to true or omit it")
		}
		f.Blocked = new(true)
	}
	if f.Reaction != "" {
		if _, err := Get(ctx, d, f.Reaction); err != nil {
			return nil, nil, err
		}
	}
	for after := (Position{}); ; {
		all, more, err := Query(ctx, d, f, after, page)
		if err != nil {
			return touched, held, err
		}
		for _, p := range all {
			after = p
			if kind := Kind(p.Reaction); f.Reaction == "" && (kind == "" || how == "reset" && kind != "reaction") {
				continue
			}
			r, err := repairOne(ctx, d, p, repairArgs{store.WorkspaceOf(ctx), p.Reaction, p.Stream, how, actor, -1})
			switch {
			case err != nil:
				return touched, held, err
			case r.pending:
				p.ResetRequested = true
				touched = append(touched, p)
			case r.applied:
				touched = append(touched, p.repaired(how, r.dueAt))
			case r.holder != "":
				held = append(held, p)
			}
		}
		if !more {
			return touched, held, nil
		}
	}
}

// One selects the position of a reaction on a stream, if the event that failed there is still the one that the
// caller has seen; with Failing -1, whichever it is.
type One struct {
	Reaction, Stream string
	Failing          int64
}

// RepairOne unblocks or skips one position for an actor, or returns an error that says why it did not.
func RepairOne(ctx context.Context, tx *store.Tx, how, actor string, o One) error {
	p, err := Stands(ctx, tx, o.Reaction, o.Stream)
	if err != nil {
		return err
	}
	r, err := repairOne(ctx, tx, p, repairArgs{store.WorkspaceOf(ctx), o.Reaction, o.Stream, how, actor, o.Failing})
	switch {
	case err != nil || r.applied:
		return err
	case r.holder != "" && p.Held:
		return fault.New(fault.Conflict, "stream %q of reaction %q is leased by %s: try again when the lease has ended", o.Stream, o.Reaction, r.holder).With("holder", r.holder)
	case o.Failing >= 0 && p.Failing != o.Failing:
		return fault.New(fault.Concurrency, "stream %q of reaction %q has changed: version %d no longer fails there. Read its position again", o.Stream, o.Reaction, o.Failing)
	}
	return nothingTo(how, o.Reaction, o.Stream)
}

func nothingTo(how, reaction, stream string) error {
	return fault.New(fault.Conflict, "no event of stream %q blocks or fails in reaction %q: there is nothing to %s", stream, reaction, how)
}

// Allows returns [fault.Conflict] if there is nothing to unblock or skip.
func (p Position) Allows(how string) error {
	if p.Blocked || how == "skip" && p.Failing >= 0 && !p.ResetRequested {
		return nil
	}
	return nothingTo(how, p.Reaction, p.Stream)
}

// repairOne repairs one position, and records that in the audit, in one transaction.
func repairOne(ctx context.Context, d store.Doer, p Position, a repairArgs) (r repaired, err error) {
	err = store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) (err error) {
		if r, err = repairVerb.Do(ctx, tx, a); err != nil || !r.applied {
			return err
		}
		now := p.repaired(a.how, r.dueAt)
		if r.pending {
			now = p
			now.ResetRequested = true
		}
		return audit.Record(ctx, tx, audit.Action{Name: "reaction." + a.how, Subject: "reaction/" + p.Reaction + "/" + p.Stream, Actor: a.actor, Before: p.audited(), After: now.audited()})
	})
	return r, err
}

// audited returns what a repair changes.
func (p Position) audited() map[string]any {
	return map[string]any{"watermark": p.Watermark, "failing": p.Failing, "blocked": p.Blocked, "error": p.Error, "generation": p.Generation, "resetRequested": p.ResetRequested}
}

// repaired returns a position after a repair.
func (p Position) repaired(how string, dueAt time.Time) Position {
	if !dueAt.IsZero() { // it is unknown if the response was lost
		p.DueAt = dueAt
	}
	switch how {
	case "reset":
		p.Watermark = -1
		p.Generation++
	case "skip":
		p.Watermark = max(p.Watermark, p.Failing)
	}
	p.Epoch++ // fences the former holder
	p.Delivered, p.Held, p.ResetRequested = p.Head, false, false
	p.Lost = 0
	p.Failures, p.Crashes, p.Blocked, p.Error, p.Failing, p.Holder, p.Until = 0, 0, false, "", -1, "", time.Time{}
	return p
}

// Rebuild resets a reaction to the beginning of every stream, revokes all its
// leases, and then calls clear to delete its writes. All of that is one
// transaction. It is meant for projections, whose writes are committed with the
// acknowledgments.
//
// The positions are reset before clear runs: an acknowledgment in flight has its
// row locked, so its writes are either visible to clear or refused. New positions
// are fenced off meanwhile: a position created, handled and acknowledged between
// the reset and clear would lose its writes, and its events would never be handled again.
func Rebuild(ctx context.Context, e Engine, name string, clear func(context.Context, *store.Tx) error) (streams int, err error) {
	if _, err := Get(ctx, e, name); err != nil {
		return 0, err
	}
	err = e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		if _, err := fenceVerb.Do(ctx, tx, name); err != nil {
			return err
		}
		if streams, err = rebuildVerb.Do(ctx, tx, name); err != nil {
			return err
		}
		return clear(ctx, tx)
	})
	return streams, err
}

// Progress is the progress of a reaction over all its streams.
type Progress struct {
	Streams, Behind, Blocked int
	Handled, Events          int64
}

// ProgressOf sums up the positions of a reaction.
func ProgressOf(ctx context.Context, d store.Doer, name string) (p Progress, err error) {
	for after := (Position{}); ; {
		all, more, err := Query(ctx, d, Filter{Reaction: name}, after, page)
		if err != nil {
			return p, err
		}
		for _, at := range all {
			after = at
			p.Streams++
			p.Handled += min(at.Watermark, at.Due) + 1
			p.Events += at.Due + 1
			if at.Due > at.Watermark {
				p.Behind++
			}
			if at.Blocked {
				p.Blocked++
			}
		}
		if !more {
			return p, nil
		}
	}
}
