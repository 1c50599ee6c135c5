package reactions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Lease is the lease of one stream for one reaction.
type Lease struct {
	Shard                       int16
	Workspace, Reaction, Stream string
	Watermark                   int64 // the last version handled
	Due                         int64 // the last version known to concern the reaction
	Failures, Crashes           int
	// Group is the number of crashed streams, this one included, that one holder
	// may hold at the same time. 0 means that no holder crashed on this stream.
	Group      int
	Generation int64 // number of resets
	lease.Lease
	// Events are the next events, as far as they were read. Full means that
	// there may be more.
	Events []events.Event
	Full   bool

	by *Handler // set by the worker that took the lease
}

// Attempt returns the number of the current attempt at the first event, from 1.
func (l *Lease) Attempt() int { return l.Failures + max(l.Crashes, min(l.Group, 1)) + 1 }

// Handled returns the version to acknowledge when all events are handled. If the
// read was complete, that is at least Due.
func (l *Lease) Handled() int64 {
	last := l.Watermark
	if n := len(l.Events); n > 0 {
		last = l.Events[n-1].Version
	}
	if l.Full {
		return last
	}
	return max(last, l.Due)
}

// Operation returns the id of the handling of one event by one reaction. It is
// the same for every attempt and changes with a reset.
func (l *Lease) Operation(version int64) string {
	return l.Reaction + "/" + l.Stream + "/" + strconv.FormatInt(version, 10) + "/" + strconv.FormatInt(l.Generation, 10)
}

func (l *Lease) partition() store.Partition {
	return store.Partition{Shard: l.Shard, Workspace: l.Workspace}
}

// Wanted is a reaction to take streams for.
type Wanted struct {
	Name  string
	Lease time.Duration
	// As is the definition that the caller serves. Nothing is taken if another
	// definition is registered. nil accepts any definition.
	As *Definition
	// Workspace is required if TakeArgs.All is set, and ignored otherwise.
	Workspace string
	// Handler and Kind name the handler that must serve the reaction in the
	// workspace. Nothing is taken if the handler or its kind differs. "" skips the
	// check.
	Handler, Kind string
}

// TakeArgs selects the streams to take: in the context's workspace or, with All,
// in every workspace on a shard.
type TakeArgs struct {
	Reactions []Wanted
	Holder    string
	Limit     int
	Share     int // limit per workspace; 0 means Limit
	Crashed   int // limit of streams on which a holder crashed
	// Elsewhere is set for a holder outside of this process. Such a holder counts
	// as silent (in SQL, quiet) until its first call.
	Elsewhere bool
	All       bool
	Shard     int16
}

// End ends a lease, or with Retain records the progress made under it.
type End struct {
	Lease *Lease
	// Done is the last version that was handled.
	Done int64
	// Retain keeps the lease and extends it to Extend from now. Progress counts as a
	// renewal, because renewals skip a row that its own holder has locked.
	Retain bool
	Extend time.Duration
	// Unfinished releases the stream without counting a failure. The stream is due
	// again after Delay.
	Unfinished bool
	Delay      time.Duration
	// Error counts a failure of the version Failing.
	Error   string
	Failing int64
	// Now requires that this call records the end, because other writes share its
	// transaction. An end that was recorded before does not count.
	Now bool
	// Unheard is set if the end does not come from the holder.
	Unheard bool
}

// Ended is the result of an [End]. Recorded is false if the lease was lost, or if
// the end names a version that was not delivered under it.
type Ended struct {
	Recorded bool
	// Busy is set if another transaction has the row locked; retry the end.
	Busy     bool
	Failures int
	DueAt    time.Time
}

// item is the JSON form of an End, a delivery or a renewal for the SQL statements.
type item struct {
	Workspace  string `json:"w"`
	Reaction   string `json:"r"`
	Stream     string `json:"s"`
	Epoch      int64  `json:"e"`
	Done       int64  `json:"v"`
	Retain     bool   `json:"k,omitempty"`
	Unfinished bool   `json:"g,omitempty"`
	Delay      int64  `json:"d,omitempty"`
	Error      string `json:"x,omitempty"`
	Failing    *int64 `json:"n,omitempty"`
	Lease      int64  `json:"l,omitempty"`
	Now        bool   `json:"o,omitempty"`
	Longest    int64  `json:"t,omitempty"`
	Unheard    bool   `json:"q,omitempty"`
}

func (l *Lease) item() item {
	return item{Workspace: l.Workspace, Reaction: l.Reaction, Stream: l.Stream, Epoch: l.Epoch}
}

type readArgs struct {
	Streams []any `arg:"streams"`
	limit   int   `arg:"limit"`
}

type found struct {
	nth   int // index of the lease
	event events.Event
}

type blockArgs struct {
	workspace string // of the notice
	reaction  string `arg:"reaction"`
	name      string `arg:"stream"`
	epoch     int64  `arg:"epoch"`
	how       string `arg:"how"` // blocked, skipped, died
	done      int64  `arg:"done"`
	failing   int64  `arg:"failing"`
	message   string `arg:"error"`
	failures  int    `arg:"failures"`
}

// follows is the key of a row of the table follow on a shard, with the epoch of
// its lease.
type follows struct {
	workspace, reaction, stream string
	epoch                       int64
}

func (l *Lease) row() follows { return follows{l.Workspace, l.Reaction, l.Stream, l.Epoch} }

type renewed struct {
	follows
	Renewal
}

// Renewal is the result of a renewal. Until is the zero time for a lost lease.
// CancelRequested tells the holder to stop, because a reset is requested.
type Renewal struct {
	Until           time.Time
	CancelRequested bool
}

type acked struct {
	follows
	Ended
}

var (
	takeVerb = store.NewVerb(store.Decl{Name: "reactions.take", Lane: store.Work}, nil,
		func(a TakeArgs, args *store.Args) {
			list := make([][7]any, len(a.Reactions))
			for i, w := range a.Reactions {
				list[i] = [7]any{w.Name, w.Lease.Milliseconds()}
				if w.As != nil {
					list[i][2], list[i][3] = json.RawMessage(w.As.eventsJSON()), w.As.Streams
				}
				list[i][4] = w.Workspace
				if w.Handler != "" {
					list[i][5], list[i][6] = w.Handler, w.Kind
				}
			}
			args.Text("reactions", store.JSON(list))
			args.Text("holder", a.Holder)
			args.Int("limit", int64(a.Limit))
			args.Int("crashed", int64(min(a.Crashed, a.Limit)))
			args.Int("quiet", store.Bit(a.Elsewhere))
			args.Int("share", int64(cmp.Or(a.Share, a.Limit)))
		},
		func(all *[]*Lease, row store.Row) error {
			l := new(Lease)
			err := row.Scan(&l.Workspace, &l.Reaction, &l.Stream, &l.Watermark, &l.Due, &l.Epoch, &l.Until, &l.Failures, &l.Crashes, &l.Group, &l.Generation)
			*all = append(*all, l)
			return err
		})
	eventsVerb         = store.VerbOf[readArgs](store.Decl{Name: "reactions.read_events", Lane: store.Read}, nil, scanFound)
	historiesVerb      = store.VerbOf[readArgs](store.Decl{Name: "reactions.read_histories", Lane: store.Read}, nil, scanFound)
	ackVerb            = store.NewVerb(store.Decl{Name: "reactions.ack", Lane: store.Work}, nil, bindItems, scanAcked)
	ackAllVerb         = store.NewVerb(store.Decl{Name: "reactions.ack_all", NoWait: "reactions.ack", Lane: store.Work}, nil, bindItems, scanAcked)
	recordDeliveryVerb = store.NewVerb(store.Decl{Name: "reactions.record_delivery", Lane: store.Work}, nil, bindItems,
		store.Each(func(f *follows) []any { return []any{&f.workspace, &f.reaction, &f.stream, &f.epoch} }))
	renewVerb = store.NewVerb(store.Decl{Name: "reactions.renew", Lane: store.Vital}, nil, bindItems,
		store.Each(func(r *renewed) []any {
			return []any{&r.workspace, &r.reaction, &r.stream, &r.epoch, &r.Until, &r.CancelRequested}
		}))
	blockVerb = store.VerbOf[blockArgs](store.Decl{Name: "reactions.block", Group: true, Events: store.HistoryEvents},
		func(a blockArgs) []string { return []string{key(a.reaction, a.name)} },
		store.Outcome(func(r *stopped) (*bool, []any) { return &r.applied, []any{&r.again, &r.reset} })).
		RecoverWith(func(blockArgs, store.CommitProof) stopped { return stopped{applied: true} }).
		Wakes(func(a blockArgs) []string {
			n := notice{What: "blocked", Workspace: a.workspace, Reaction: a.reaction, Stream: a.name, Version: a.failing, Error: a.message}
			if a.how == "skipped" {
				n.What = "skipped"
			}
			return []string{n.topic()}
		}).
		Emits(func(a blockArgs) store.Emission {
			name := "blocked"
			if a.how == "skipped" {
				name = "skipped"
			}
			return store.Emission{Stream: Stream(a.reaction, a.name), Names: []string{name}}
		})
)

// stopped is the result of blockVerb. again means that the same call was applied before; reset, that a reset is
// requested.
type stopped struct{ applied, again, reset bool }

func bindItems(items []item, args *store.Args) { args.Text("items", store.JSON(items)) }

func scanAcked(all *[]acked, row store.Row) error {
	var a acked
	err := row.Scan(&a.workspace, &a.reaction, &a.stream, &a.epoch, &a.Failures, &a.DueAt, &a.Busy)
	a.Recorded = !a.Busy
	*all = append(*all, a)
	return err
}

// Stream returns the name of the history stream of a reaction on a stream.
func Stream(reaction, stream string) string { return "$reaction/" + reaction + "/" + stream }

func key(reaction, stream string) string { return "follow/" + reaction + "/" + stream }

var scanFound = store.Each(func(f *found) []any {
	e := &f.event
	return []any{&f.nth, &e.ID, &e.Version, &e.Name, &e.Data, &e.Correlation, &e.Causation, &e.Actor, &e.At, &e.Subject}
})

// Turns lists the reactions and workspaces that may have work.
var Turns = lease.NewTurns("reactions.list_turns")

// Take leases streams that have due events.
func Take(ctx context.Context, d store.Doer, a TakeArgs) ([]*Lease, error) {
	if len(a.Reactions) == 0 || a.Limit < 1 || a.Limit > 1000 || a.Crashed < 0 {
		return nil, fault.New(fault.Validation, "at least one reaction, a limit between 1 and 1000, and a crashed-stream limit of at least 0 are required (reactions: %d, limit: %d, crashed-stream limit: %d)",
			len(a.Reactions), a.Limit, a.Crashed)
	}
	for _, w := range a.Reactions {
		if err := strictjson.Text("reaction", w.Name, events.MaxName); err != nil {
			return nil, err
		}
		if a.All && w.Workspace == "" {
			return nil, fault.New(fault.Internal, "claiming in all workspaces requires the workspace of each reaction")
		}
	}
	if err := strictjson.Text("holder", a.Holder, events.MaxName); err != nil {
		return nil, err
	}
	at := store.Partition{Shard: a.Shard}
	if !a.All {
		var err error
		if at, err = d.Partition(ctx, store.Read); err != nil {
			return nil, err
		}
		a.Reactions = slices.Clone(a.Reactions)
		for i := range a.Reactions {
			a.Reactions[i].Workspace = at.Workspace
		}
	}
	all, err := takeVerb.DoAt(ctx, d, at, a)
	for _, l := range all {
		l.Shard = at.Shard
		meter.Of(d).Kind(Kind(l.Reaction)).Take(l.Attempt())
	}
	return all, err
}

// LoadEvents reads the next events of leases that have the same source and
// shard, up to limit events per lease. names returns the event names to read,
// none for all. It reads only up to the lease's Due: the reaction may have been
// registered with another definition for later events.
func LoadEvents(ctx context.Context, d store.Doer, source store.EventTable, leases []*Lease, names func(*Lease) []string, limit int) error {
	if len(leases) == 0 {
		return nil
	}
	a := readArgs{limit: limit}
	for _, l := range leases {
		l.Events, l.Full = nil, false
		a.Streams = append(a.Streams, []any{l.Workspace, l.Stream, l.Watermark, l.Due, names(l)})
	}
	verb := eventsVerb
	if source == store.HistoryEvents {
		verb = historiesVerb
	}
	all, err := verb.DoAt(ctx, d, store.Partition{Shard: leases[0].Shard}, a)
	if err != nil {
		return err
	}
	for _, f := range all {
		l := leases[f.nth]
		f.event.Stream = l.Stream
		l.Events = append(l.Events, f.event)
		l.Full = len(l.Events) == limit
	}
	return nil
}

// loadEventsWithin is [LoadEvents] for one lease within a budget. It reads at
// least one event if there is any.
func loadEventsWithin(ctx context.Context, d store.Doer, b *store.Budget, source store.EventTable, l *Lease, names func(*Lease) []string, limit int) error {
	ctx = b.In(ctx)
	rest := *l
	for l.Events, l.Full = nil, false; ; {
		n := b.Rows(limit - len(l.Events))
		if err := LoadEvents(ctx, d, source, []*Lease{&rest}, names, n); err != nil {
			return err
		}
		l.Events = append(l.Events, rest.Events...)
		l.Full = len(l.Events) == limit || store.Cut(ctx)
		if l.Full || len(rest.Events) < n {
			return nil
		}
		rest.Watermark = rest.Events[n-1].Version
	}
}

// Ack records ends on one shard in one statement, at most one end per stream.
// The end of a lost lease is not recorded and changes nothing. Ack never waits
// for a row lock: it reports an end whose row is locked as busy.
func Ack(ctx context.Context, d store.Doer, ends []End) ([]Ended, error) {
	return ackBy(ctx, d, ackAllVerb, ends)
}

func ackBy(ctx context.Context, d store.Doer, verb *store.Verb[[]item, []acked], ends []End) ([]Ended, error) {
	if len(ends) == 0 {
		return nil, nil
	}
	items := make([]item, len(ends))
	for i, e := range ends {
		items[i] = e.Lease.item()
		items[i].Done, items[i].Retain, items[i].Unfinished = e.Done, e.Retain, e.Unfinished
		items[i].Delay, items[i].Now, items[i].Lease, items[i].Unheard = e.Delay.Milliseconds(), e.Now, e.Extend.Milliseconds(), e.Unheard
		if e.Error != "" {
			failing := e.Failing
			items[i].Error, items[i].Failing = lease.Plain(e.Error), &failing
		}
	}
	rows, err := verb.DoAt(ctx, d, store.Partition{Shard: ends[0].Lease.Shard}, items)
	recorded := make(map[follows]Ended, len(rows))
	for _, r := range rows {
		recorded[r.follows] = r.Ended
	}
	out := make([]Ended, len(ends))
	for i, e := range ends {
		out[i] = recorded[e.Lease.row()]
	}
	return out, err
}

// AckOne records one end, or returns [fault.LeaseLost]. It waits for the row lock.
func AckOne(ctx context.Context, d store.Doer, e End) (Ended, error) {
	all, err := ackBy(ctx, d, ackVerb, []End{e})
	if err != nil {
		return Ended{}, err
	}
	if !all[0].Recorded {
		return Ended{}, e.Lease.late(ctx, d, "acknowledge")
	}
	return all[0], nil
}

// Block blocks a stream for a reaction or, with block false, skips the version
// that failed. It returns [fault.LeaseLost] if the lease is lost. Repeating the
// call under the same epoch returns the same result. If a reset is requested, the
// stream is reset instead and the error is errReset.
func Block(ctx context.Context, d store.Doer, l *Lease, done, failing int64, message string, failures int, block bool) error {
	a := blockArgs{how: "blocked", done: done, failing: failing, message: lease.Plain(message), failures: failures,
		workspace: l.Workspace, reaction: l.Reaction, name: l.Stream, epoch: l.Epoch}
	if !block {
		a.how, a.failures = "skipped", 0
	}
	r, err := blockVerb.DoAt(ctx, d, l.partition(), a)
	switch {
	case err != nil || r.applied || r.again:
		return err
	case r.reset:
		if _, err = AckOne(ctx, d, End{Lease: l, Done: l.Watermark, Unfinished: true}); err == nil {
			err = errReset
		}
		return err
	}
	return l.late(ctx, d, a.how)
}

// late records the refusal of a late holder, and returns its error.
func (l *Lease) late(ctx context.Context, d store.Doer, action string) error {
	return l.note(ctx, d, action, lease.Lost("stream "+l.Stream+" for "+l.Reaction, l.Epoch))
}

// note records a refused write under a lease, and returns err.
func (l *Lease) note(ctx context.Context, d store.Doer, action string, err error) error {
	return refusals.Note(store.InWorkspace(ctx, l.Workspace), d, refusals.Try{Stream: Stream(l.Reaction, l.Stream), Action: action, Epoch: l.Epoch}, err)
}

// errReset cancels the context of a body whose stream has to be reset.
var errReset = errors.New("the stream is being reset")

// Renew extends leases on one shard and returns the state of each.
func Renew(ctx context.Context, d store.Doer, leases []*Lease, lease func(*Lease) time.Duration) ([]Renewal, error) {
	return renewWithin(ctx, d, leases, lease, 0)
}

// renewWithin is [Renew] with a limit: no lease is extended beyond longest after
// its take. 0 means no limit.
func renewWithin(ctx context.Context, d store.Doer, leases []*Lease, lease func(*Lease) time.Duration, longest time.Duration) ([]Renewal, error) {
	items := make([]item, len(leases))
	for i, l := range leases {
		items[i] = l.item()
		items[i].Lease, items[i].Longest = lease(l).Milliseconds(), longest.Milliseconds()
	}
	rows, err := renewVerb.DoAt(ctx, d, store.Partition{Shard: leases[0].Shard}, items)
	extended := make(map[follows]Renewal, len(rows))
	for _, r := range rows {
		extended[r.follows] = r.Renewal
	}
	all := make([]Renewal, len(leases))
	for i, l := range leases {
		all[i] = extended[l.row()]
	}
	return all, err
}

// sweepLimit is the number of rows that one sweep reads.
const sweepLimit = 500

type expiredLease struct {
	Workspace string `json:"w"`
	Reaction  string `json:"r"`
	Stream    string `json:"s"`
	Epoch     int64  `json:"e"`
	Pause     int64  `json:"d,omitempty"` // in ms, after a lost hand-out

	holder         string
	last           bool // the holder crashed, and one more crash is too many
	watermark, due int64
	source, names  string
}

var (
	expiredVerb = store.NewVerb(store.Decl{Name: "reactions.list_expired", Lane: store.Read}, nil, store.IntArg("limit"),
		func(all *[]expiredLease, row store.Row) error {
			var l expiredLease
			var lost int64
			err := row.Scan(&l.Workspace, &l.Reaction, &l.Stream, &l.Epoch, &l.holder, &l.last, &l.watermark, &l.due, &l.source, &l.names, &lost)
			l.Pause = lease.LostPause(lost, l.Stream).Milliseconds()
			*all = append(*all, l)
			return err
		})
	releaseExpiredVerb = store.NewVerb(store.Decl{Name: "reactions.release_expired", Lane: store.Work}, nil,
		func(all []expiredLease, args *store.Args) { args.Text("items", store.JSON(all)) },
		store.ScanValues[string])
)

// Sweep releases the expired leases of a workspace, or of all on a shard, and finishes interrupted
// registrations and removals. It may run on every node at once. It calls wake
// with the topics of the reactions that have work again.
func Sweep(ctx context.Context, d store.Doer, at store.Partition, wake func([]string)) (freed int, err error) {
	all, err := expiredVerb.DoAt(ctx, d, at, sweepLimit)
	if err != nil {
		return 0, err
	}
	var again []expiredLease
	for _, l := range all {
		if !l.last {
			again = append(again, l)
			continue
		}
		failing, failed := l.next(ctx, d, at.Shard)
		err = errors.Join(err, failed)
		a := blockArgs{how: "died", done: -1, failing: failing, workspace: l.Workspace, reaction: l.Reaction, name: l.Stream, epoch: l.Epoch,
			message: "every worker that held the stream crashed; the last was " + l.holder}
		r, failed := blockVerb.DoAt(ctx, d, store.Partition{Shard: at.Shard, Workspace: l.Workspace}, a)
		err = errors.Join(err, failed) // continue: one failure must not block the release of the other leases
		if r.applied {
			freed++
			l.expired(d, l.Reaction)
		}
	}
	if len(again) > 0 {
		names, failed := releaseExpiredVerb.DoAt(ctx, d, at, again)
		err = errors.Join(err, failed)
		freed += len(names)
		for i, name := range names {
			l := expiredLease{} // which of the leases is known only if all were released
			if len(names) == len(again) {
				l = again[i]
				name = l.Reaction
			}
			l.expired(d, name)
		}
		topics := make([]string, len(names))
		for i, n := range names {
			topics[i] = store.DueTopic(n)
		}
		wake(topics)
	}
	_, failed := finishAll(ctx, d, at)
	return freed, errors.Join(err, failed)
}

// expired counts and logs a lease that was released.
func (l expiredLease) expired(d store.Doer, reaction string) {
	attrs := []slog.Attr{slog.String("reaction", reaction)}
	if l.Stream != "" {
		attrs = append(attrs, slog.String("workspace", l.Workspace), slog.String("stream", l.Stream), slog.String("holder", l.holder), slog.Int64("epoch", l.Epoch))
	}
	meter.Of(d).Expire(Kind(reaction), attrs...)
}

// next returns the version of the event that the holder crashed on: the first
// one after the watermark.
func (l expiredLease) next(ctx context.Context, d store.Doer, shard int16) (int64, error) {
	r, err := store.ParseReaction(l.Reaction, l.source, l.names, "")
	if err != nil {
		return l.watermark + 1, err
	}
	held := &Lease{Shard: shard, Workspace: l.Workspace, Reaction: l.Reaction, Stream: l.Stream, Watermark: l.watermark, Due: l.due}
	err = LoadEvents(ctx, d, r.Source, []*Lease{held}, func(*Lease) []string { return r.Events }, 1)
	if err != nil || len(held.Events) == 0 {
		return l.watermark + 1, err
	}
	return held.Events[0].Version, nil
}

// SweepAll runs [Sweep] on every shard in use.
func SweepAll(ctx context.Context, d store.Doer, wake func([]string)) (freed int, err error) {
	return store.Sweep(ctx, d, func(at store.Partition) (int, error) { return Sweep(ctx, d, at, wake) })
}
