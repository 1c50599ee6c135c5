package reactions

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// A client can serve a reaction over the API: it claims streams and reports the
// results itself, by hand or as the worker of a handler. The lease, and the
// statements that begin and end it, are the same as for a reaction that a node serves ([Worker]).

// Ask selects streams of reactions of the context's workspace.
type Ask struct {
	Reactions []Info
	// Kind is the kind that the handlers of the reactions must have. With "" no handler
	// is checked: the caller passes only reactions without one.
	Kind   string
	Holder string
	Limit  int
	Lease  time.Duration // 0 means each reaction's own
	Events int           // limit per stream
	// Budget limits the bytes of all events together, except the first event of
	// each stream. nil means no limit.
	Budget *store.Budget
	// Every returns true for a reaction whose events are read whatever their name.
	Every func(Info) bool
	// Wants returns false for an event to leave out; nil leaves out none.
	Wants func(*Lease, events.Event) (bool, error)
}

// TakeAsked takes streams that have events to deliver. It acknowledges the
// streams without such events itself: the client has no event to acknowledge.
func TakeAsked(ctx context.Context, d store.Doer, a Ask) ([]*Lease, error) {
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return nil, err
	}
	var names []string
	args := TakeArgs{Holder: a.Holder, Limit: a.Limit, Crashed: a.Limit, Elsewhere: true}
	byName := make(map[string]Info, len(a.Reactions))
	for _, x := range a.Reactions {
		byName[x.Name] = x
		names = append(names, x.Name)
		w := Wanted{Name: x.Name, Lease: cmp.Or(a.Lease, x.Options.Lease), Kind: a.Kind, As: &x.Definition}
		if a.Kind != "" {
			w.Handler = x.Options.Handler
		}
		args.Reactions = append(args.Reactions, w)
	}
	if len(names) == 0 {
		return nil, nil
	}
	if _, err := CollectDue(ctx, d, at, names); err != nil {
		return nil, err
	}
	for {
		taken, err := Take(ctx, d, args)
		if err != nil || len(taken) == 0 {
			return nil, err
		}
		type readMode struct {
			source store.EventTable
			every  bool
		}
		byMode := make(map[readMode][]*Lease)
		for _, l := range taken {
			x := byName[l.Reaction]
			w := readMode{x.Source(), a.Every != nil && a.Every(x)}
			byMode[w] = append(byMode[w], l)
		}
		for w, some := range byMode {
			names, limit := func(l *Lease) []string { x := byName[l.Reaction]; return x.wanted() }, max(a.Events, 1)
			if w.every { // Wants selects among all events
				names, limit = func(*Lease) []string { return nil }, readLimit
			}
			if a.Budget == nil {
				if err := LoadEvents(ctx, d, w.source, some, names, limit); err != nil {
					return nil, err
				}
				continue
			}
			for _, l := range some {
				if err := loadEventsWithin(ctx, d, a.Budget, w.source, l, names, limit); err != nil {
					return nil, err
				}
			}
		}
		if taken, err = withEvents(ctx, d, a.Wants, taken); err != nil {
			return nil, err
		}
		if taken, err = deliver(ctx, d, taken, max(a.Events, 1)); err != nil || len(taken) > 0 {
			return taken, err
		}
	}
}

// wanted returns the event names that a reaction selects, none for all.
func (d *Definition) wanted() []string {
	if slices.Contains(d.Events, "*") {
		return nil
	}
	return d.Events
}

// withEvents removes the events that wants refuses, and returns the leases that still have events. It acknowledges the
// others.
func withEvents(ctx context.Context, d store.Doer, wants func(*Lease, events.Event) (bool, error), taken []*Lease) ([]*Lease, error) {
	var some []*Lease
	var ends []End
	for _, l := range taken {
		handled, first := l.Handled(), int64(0)
		if len(l.Events) > 0 {
			first = l.Events[0].Version
		}
		if wants != nil {
			var failed error
			l.Events = slices.DeleteFunc(l.Events, func(e events.Event) bool {
				yes, err := wants(l, e)
				if err != nil {
					failed = err
				}
				return err == nil && !yes
			})
			if failed != nil { // the lease expires, and the stream is taken again
				continue
			}
		}
		if len(l.Events) > 0 {
			some = append(some, l)
			if next := l.Events[0].Version; next > first { // a crash is blamed on the first event after the watermark: this must be that event
				ends = append(ends, End{Lease: l, Done: next - 1, Retain: true, Unheard: true})
			}
		} else {
			ends = append(ends, End{Lease: l, Done: handled})
		}
	}
	_, err := ackAll(ctx, d, ends)
	return some, err
}

// deliver cuts leases to limit events, records the last delivered version, and
// returns the leases that are still held. A take records all due versions as
// delivered, so only a lower version is recorded here. That is safe: the client
// has not seen the lease yet, and a take after a crash records it again.
func deliver(ctx context.Context, d store.Doer, taken []*Lease, limit int) ([]*Lease, error) {
	var items []item
	for _, l := range taken {
		if len(l.Events) > limit {
			l.Events, l.Full = l.Events[:limit], true
		}
		if l.Handled() < l.Due {
			x := l.item()
			x.Done = l.Handled()
			items = append(items, x)
		}
	}
	if len(items) == 0 {
		return taken, nil
	}
	noted, err := recordDeliveryVerb.DoAt(ctx, d, store.Partition{Shard: taken[0].Shard}, items)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(taken, func(l *Lease) bool { return l.Handled() < l.Due && !slices.Contains(noted, l.row()) }), nil
}

// ackAll records ends and waits for locked rows; collectors of due notices lock
// rows often and briefly. Outside a transaction the unlocked rows are recorded
// first. In a transaction that would mean waiting with rows locked, so all rows
// are locked in one order instead.
func ackAll(ctx context.Context, d store.Doer, ends []End) ([]Ended, error) {
	if _, ok := d.(*store.Tx); ok {
		return ackBy(ctx, d, ackVerb, ends)
	}
	out, err := Ack(ctx, d, ends)
	if err != nil {
		return nil, err
	}
	var busy []End
	for i := range out {
		if out[i].Busy {
			busy = append(busy, ends[i])
		}
	}
	waited, err := ackBy(ctx, d, ackVerb, busy)
	for i := range out {
		if err == nil && out[i].Busy {
			out[i], waited = waited[0], waited[1:]
		}
	}
	return out, err
}

// AckAsked records ends of leases that [TakeAsked] returned, at most one per
// stream. It returns for each nil, [fault.LeaseLost] or [fault.NotDelivered]. A
// refused end changes nothing.
func AckAsked(ctx context.Context, d store.Doer, ends []End) ([]*fault.Error, error) {
	done, err := ackAll(ctx, d, ends)
	if err != nil {
		return nil, err
	}
	refused := make([]*fault.Error, len(ends))
	for i, e := range ends {
		if done[i].Recorded {
			continue
		}
		// ackAll waited for locked rows, so a row that is still reported as busy no longer exists.
		p, err := Stands(ctx, d, e.Lease.Reaction, e.Lease.Stream)
		if err != nil && fault.CodeOf(err) != fault.NotFound {
			return nil, err
		}
		refused[i] = p.refusal(e.Lease, e.Done)
		_ = e.Lease.note(ctx, d, "acknowledge", refused[i])
	}
	return refused, nil
}

// refusal returns why a version cannot be acknowledged under a lease. The
// delivered version of an epoch does not change once the client has the lease, so the
// reason holds however late it is determined.
func (p Position) refusal(l *Lease, version int64) *fault.Error {
	if p.Epoch == l.Epoch && p.Held && version > p.Delivered {
		return fault.New(fault.NotDelivered, "stream %q was delivered only up to version %d: acknowledge that version, then claim again", l.Stream, p.Delivered).
			With("delivered", p.Delivered)
	}
	return lease.Lost("stream "+l.Stream+" for "+l.Reaction, l.Epoch)
}

type oneArgs struct {
	reaction string `arg:"reaction"`
	stream   string `arg:"stream"`
}

var positionVerb = store.VerbOf[oneArgs](store.Decl{Name: "reactions.get_position", Lane: store.Read}, nil, scanPosition)

// Stands returns the position of a reaction on a stream of the context's
// workspace, or [fault.NotFound].
func Stands(ctx context.Context, d store.Doer, reaction, stream string) (Position, error) {
	all, err := positionVerb.Do(ctx, d, oneArgs{reaction, stream})
	if err == nil && len(all) == 0 {
		err = fault.New(fault.NotFound, "reaction %q has no position in stream %q", reaction, stream)
	}
	if err != nil {
		return Position{}, err
	}
	return all[0], nil
}

// Failed is the result of a reported failure.
type Failed struct {
	Blocked   bool
	Skipped   bool
	Failures  int
	NotBefore time.Time
}

// What returns what happened to the stream: blocked, skipped or failed.
func (f Failed) What() string {
	switch {
	case f.Skipped:
		return "skipped"
	case f.Blocked:
		return "blocked"
	}
	return "failed"
}

// Fail counts a failure of the version failing or, if that is -1, of the first
// event after the watermark. After the last retry it blocks the stream or skips
// the event, as [Worker] does. Repeating the call under the same epoch
// returns the same result.
func Fail(ctx context.Context, d store.Doer, x Info, l *Lease, failing int64, message string, retryable bool) (Failed, error) {
	message = lease.Plain(message)
	p, err := Stands(ctx, d, l.Reaction, l.Stream)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		return Failed{}, l.late(ctx, d, "fail")
	case err != nil:
		return Failed{}, err
	case p.Epoch != l.Epoch:
		return Failed{}, l.late(ctx, d, "fail")
	case p.Holder == "" && p.Error == message && p.Failures > 0: // reported before
		f := Failed{Blocked: p.Blocked, Failures: p.Failures}
		if !p.Blocked {
			f.NotBefore = p.DueAt
		}
		return f, nil
	case p.Holder == "" && !p.Blocked && failing >= 0 && p.Watermark >= failing && p.Error == "": // skipped before
		return Failed{Skipped: true}, nil
	}
	l.Watermark, l.Due, l.Failures = p.Watermark, p.Due, p.Failures
	if failing < 0 {
		if err := LoadEvents(ctx, d, x.Source(), []*Lease{l}, func(*Lease) []string { return x.wanted() }, 1); err != nil {
			return Failed{}, err
		}
		failing = p.Watermark + 1
		if len(l.Events) > 0 {
			failing = l.Events[0].Version
		}
	}
	if failures := p.Failures + 1; !retryable || failures > x.Options.MaxRetries {
		block := x.Options.BlockOnError || !retryable
		err := Block(ctx, d, l, p.Watermark, failing, message, failures, block)
		if errors.Is(err, errReset) {
			return Failed{}, nil
		}
		if !block {
			failures = 0
		}
		return Failed{Blocked: block, Skipped: !block, Failures: failures}, err
	}
	ended, err := AckOne(ctx, d, End{Lease: l, Done: p.Watermark, Error: message, Failing: failing, Delay: x.Options.Backoff.Pause(p.Failures + 1)})
	return Failed{Failures: ended.Failures, NotBefore: ended.DueAt}, err
}

// ByHand returns the lease that a client claims to hold. Only its epoch proves it.
func ByHand(at store.Partition, reaction, stream string, epoch int64) *Lease {
	return &Lease{Shard: at.Shard, Workspace: at.Workspace, Reaction: reaction, Stream: stream, Watermark: -1, Lease: lease.Lease{Epoch: epoch}}
}

// Snooze releases a stream without counting a failure; it is due again after the
// delay. version is the event that the caller was given, or -1 for a lease of the whole
// stream. Repeating the call under the same epoch returns the same time. If that event,
// or everything due, has been handled, the lease was not ended by a snooze, and the error
// is [fault.LeaseLost].
func Snooze(ctx context.Context, d store.Doer, l *Lease, version int64, delay time.Duration) (dueAt time.Time, err error) {
	// Now: otherwise a lease that was acknowledged would count as one that was snoozed before.
	e, err := AckOne(ctx, d, End{Lease: l, Done: -1, Unfinished: true, Delay: delay, Now: true})
	if fault.CodeOf(err) != fault.LeaseLost {
		return e.DueAt, err
	}
	p, failed := Stands(ctx, d, l.Reaction, l.Stream)
	switch {
	case failed != nil && fault.CodeOf(failed) != fault.NotFound:
		return time.Time{}, failed
	case failed != nil || p.Epoch != l.Epoch || p.Holder != "" || p.Blocked || p.Watermark >= p.Due || version >= 0 && p.Watermark >= version:
		return time.Time{}, err
	}
	return p.DueAt, nil // released before
}

// RenewOne extends one lease, at most until longest after its take (0 means no
// limit), or returns [fault.LeaseLost].
func RenewOne(ctx context.Context, d store.Doer, l *Lease, leaseTime, longest time.Duration) (Renewal, error) {
	all, err := renewWithin(ctx, d, []*Lease{l}, func(*Lease) time.Duration { return leaseTime }, longest)
	if err == nil && all[0].Until.IsZero() {
		err = l.late(ctx, d, "renew")
	}
	if err != nil {
		return Renewal{}, err
	}
	return all[0], nil
}
