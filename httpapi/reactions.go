package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) reactionRoutes() {
	const byToken = "The lease is identified by its token."
	add(a, route{Method: http.MethodGet, Path: "reactions", ID: "listReactions", Tag: "reactions", Summary: "List the workspace's reactions and its lifecycles' after-effects.", Roles: readers}, listReactions)
	add(a, route{Method: http.MethodPut, Path: "reactions/{name}", ID: "putReaction", Tag: "reactions", Summary: "Register a reaction, or change its definition.", Roles: admins, Also: http.StatusCreated, Idempotency: table.UnderLease, Adds: []quota.Kind{quota.Definitions}}, putReaction)
	add(a, route{Method: http.MethodGet, Path: "reactions/{name}", ID: "getReaction", Tag: "reactions", Summary: "Show a reaction.", Roles: readers}, getReaction)
	add(a, route{Method: http.MethodDelete, Path: "reactions/{name}", ID: "deleteReaction", Tag: "reactions", Summary: "Delete a reaction.", Roles: admins, Idempotency: table.UnderLease, Frees: true}, deleteReaction)
	add(a, route{Method: http.MethodGet, Path: "reactions/{name}/streams", ID: "listPositions", Tag: "reactions", Summary: "List a reaction's positions in its streams (* for all reactions).", Roles: readers, Filter: "PositionFilter"}, listPositions)
	add(a, route{Method: http.MethodPost, Path: "reactions/{name}/claim", ID: "claimLeases", Tag: "reactions", Summary: "Claim a reaction's streams manually.", Roles: workers, Idempotency: table.AsHandOut}, claimLeases)
	add(a, route{Method: http.MethodPost, Path: "reactions/{name}/ack", ID: "ackLeases", Tag: "reactions", Summary: "Acknowledge handled events.", Roles: workers, Idempotency: table.InTx,
		More: "Each lease is identified by its token. A lost lease or a version that was not delivered is reported in the results, not as an error."}, ackLeases)
	add(a, route{Method: http.MethodPost, Path: "reactions/{name}/fail", ID: "failLease", Tag: "reactions", Summary: "Report that an event could not be handled.", Roles: workers, Idempotency: table.UnderLease, More: byToken}, failLease)
	add(a, route{Method: http.MethodPost, Path: "reactions/{name}/snooze", ID: "snoozeLease", Tag: "reactions", Summary: "Give a stream back until a later time.", Roles: workers, Idempotency: table.UnderLease,
		More: "This does not count as a failure. " + byToken}, snoozeLease)
	add(a, route{Method: http.MethodPost, Path: "reactions/{name}/renew", ID: "renewLease", Tag: "reactions", Summary: "Renew a lease.", Roles: workers, Idempotency: table.UnderLease, More: byToken}, renewLease)
	for _, x := range []struct{ how, summary, more string }{
		{"unblock", "Unblock a reaction on its streams (* for all reactions).", "Each stream continues with the event that blocked it."},
		{"reset", "Reset a reaction's positions (* for all reactions).", "The reaction handles all of their events again. With *, the positions of after-effects and webhooks are not reset."},
		{"skip", "Skip the events that block a reaction's streams (* for all reactions).", "Each stream continues with its next event."},
	} {
		add(a, route{Method: http.MethodPost, Path: "reactions/{name}/" + x.how, ID: x.how + "Reactions", Tag: "reactions", Summary: x.summary,
			Roles: operators, Idempotency: table.InTx, More: x.more}, func(c *call, in *repairIn) (wire.Repaired, error) { return repair(c, x.how, in) })
	}
}

func listReactions(c *call, in *paged) (wire.List[wire.Reaction], error) {
	p, err := c.page(*in)
	if err != nil {
		return wire.List[wire.Reaction]{}, err
	}
	all, err := reactions.List(c.ctx(), c.doer(), "")
	if err != nil {
		return wire.List[wire.Reaction]{}, err
	}
	var out []wire.Reaction
	next := ""
	for _, x := range all {
		if kind := reactions.Kind(x.Name); x.Name <= p.after || kind == "" || kind == "webhook" { // webhooks have their own list
			continue
		}
		if len(out) == p.limit {
			next = out[len(out)-1].Name
			break
		}
		out = append(out, reactionOf(x))
	}
	return listed(c, out, next), nil
}

func reactionOf(x reactions.Info) wire.Reaction {
	o := x.Options
	r := wire.Reaction{Name: x.Name, Events: x.Events, Streams: x.Streams, Source: "event", MaxRetries: o.MaxRetries, MaxDeaths: o.MaxCrashes,
		BlockOnError: o.BlockOnError, Backoff: wire.Backoff{Kind: o.Backoff.Kind, BaseMs: wire.Ms(o.Backoff.Base), MaxMs: wire.Ms(o.Backoff.Max)},
		LeaseMs: wire.Ms(o.Lease), Start: "beginning", Priority: o.Priority, Handler: o.Handler, Program: o.Program, CreatedAt: shapes.At(x.CreatedAt), UpdatedAt: shapes.At(x.UpdatedAt)}
	if len(r.Events) == 0 {
		r.Events = []string{"*"}
	}
	if strings.HasPrefix(x.Streams, `^\$`) {
		r.Source = "history"
	}
	if o.FromNow {
		r.Start = "now"
	}
	return r
}

type putReactionIn struct {
	Name string `path:"name"`
	Body wire.PutReaction
}

func (in *putReactionIn) repeats(c *call) (bool, error) {
	_, err := reactions.Get(c.ctx(), c.api.engine, in.Name)
	return exists(err)
}

func putReaction(c *call, in *putReactionIn) (wire.Reaction, error) {
	if len(in.Body.Events) == 0 {
		return wire.Reaction{}, fault.New(fault.Validation, `events must name at least one event, or be ["*"] for all`).With("pointer", "/events")
	}
	d, err := definition(in.Name, in.Body)
	if err != nil {
		return wire.Reaction{}, err
	}
	if h := d.Options.Handler; h != "" {
		_, unknown, err := c.declare([]string{h})
		if err != nil {
			return wire.Reaction{}, err
		}
		if len(unknown) > 0 {
			return wire.Reaction{}, fault.New(fault.Validation, "handler %q does not exist: declare it first with PUT handlers/%s", h, h).With("pointer", "/handler")
		}
	}
	created, err := reactions.Register(audit.Requested(c.ctx()), c.api.engine, d)
	if err != nil {
		return wire.Reaction{}, err
	}
	if created {
		c.status = http.StatusCreated
	}
	now, err := reactions.Get(c.ctx(), c.doer(), in.Name)
	return reactionOf(now), err
}

// definition converts a put request to a definition.
func definition(name string, b wire.PutReaction) (reactions.Definition, error) {
	d := reactions.Definition{Name: name, Events: b.Events, Streams: b.Streams, FromNow: b.Start == "now", Options: reactions.DefaultOptions()}
	if reactions.Reserved(name) {
		return d, fault.New(fault.Validation, "reaction name %q is reserved: choose a name that does not begin with $", name)
	}
	if b.Start != "" && b.Start != "now" && b.Start != "beginning" {
		return d, fault.New(fault.Validation, "start must be beginning or now, got %q", b.Start).With("pointer", "/start")
	}
	switch {
	case b.Source == "history" && b.Streams == "":
		d.Streams = `^\$`
	case b.Source == "history" && !strings.HasPrefix(b.Streams, `^\$`):
		return d, fault.New(fault.Validation, `a pattern for histories must begin with ^\$, got %q`, b.Streams).With("pointer", "/streams")
	case b.Source == "event" && strings.HasPrefix(b.Streams, `^\$`):
		return d, fault.New(fault.Validation, "a pattern that begins with ^\\$ matches histories: set source to history").With("pointer", "/streams")
	case b.Source != "" && b.Source != "event" && b.Source != "history":
		return d, fault.New(fault.Validation, "source must be event or history, got %q", b.Source).With("pointer", "/source")
	}
	o := &d.Options
	if b.MaxRetries != nil {
		o.MaxRetries = *b.MaxRetries
	}
	if b.MaxDeaths != nil {
		o.MaxCrashes = *b.MaxDeaths
	}
	if b.BlockOnError != nil {
		o.BlockOnError = *b.BlockOnError
	}
	if b.Backoff != nil {
		o.Backoff.Kind, o.Backoff.Base, o.Backoff.Max = b.Backoff.Kind, span(b.Backoff.BaseMs), span(b.Backoff.MaxMs)
	}
	if b.LeaseMs != 0 {
		o.Lease = span(b.LeaseMs)
	}
	o.Priority, o.Handler = b.Priority, b.Handler
	return d, nil
}

type reactionIn struct {
	Name string `path:"name"`
}

func getReaction(c *call, in *reactionIn) (wire.Reaction, error) {
	x, err := reactions.Get(c.ctx(), c.doer(), in.Name)
	return reactionOf(x), err
}

func deleteReaction(c *call, in *reactionIn) (*struct{}, error) {
	if reactions.Reserved(in.Name) {
		return nil, fault.New(fault.NotFound, "reaction %q does not exist", in.Name)
	}
	gone, err := reactions.Remove(audit.Requested(c.ctx()), c.api.engine, in.Name)
	if err == nil && !gone {
		err = fault.New(fault.NotFound, "reaction %q does not exist", in.Name)
	}
	return nil, err
}

type listPositionsIn struct {
	Name    string `path:"name"`
	Stream  string `query:"stream" arg:"pattern" doc:"List only streams whose names match this regular expression (RE2)."`
	Blocked *bool  `query:"blocked" doc:"If true, list only blocked streams; if false, only streams that are not blocked. If omitted, list both."`
	paged
}

// every selects all reactions.
const every = "*"

func listPositions(c *call, in *listPositionsIn) (wire.List[wire.Position], error) {
	var none wire.List[wire.Position]
	p, err := c.page(in.paged)
	if err != nil {
		return none, err
	}
	f := reactions.Filter{Pattern: in.Stream, Blocked: in.Blocked}
	if in.Name != every {
		f.Reaction = in.Name
		if _, err := reactions.Get(c.ctx(), c.doer(), in.Name); err != nil {
			return none, err
		}
	}
	var after reactions.Position
	after.Reaction, after.Stream, _ = strings.Cut(p.after, "\n") // names contain no newline
	found, more, err := reactions.Query(c.ctx(), c.doer(), f, after, p.limit)
	if err != nil {
		return none, err
	}
	all := make([]wire.Position, 0, len(found))
	next := ""
	for _, x := range found {
		if more {
			next = x.Reaction + "\n" + x.Stream
		}
		if x.Reaction == feed.Reaction && in.Name == every { // users cannot repair the feed
			continue
		}
		all = append(all, wire.Position{Stream: x.Stream, Reaction: x.Reaction, Watermark: x.Watermark, Due: x.Due, Head: x.Head, Failing: failing(x), Retry: x.Failures, Deaths: x.Crashes, LostHandOuts: x.Lost,
			Blocked: x.Blocked, Error: x.Error, LeasedBy: x.Holder, LeasedUntil: shapes.At(x.Until), NotBefore: shapes.At(x.DueAt),
			ResetRequested: x.ResetRequested})
	}
	return listed(c, all, next), nil
}

// failing returns the version of the event that failed, or nil.
func failing(x reactions.Position) *int64 {
	if x.Failing < 0 {
		return nil
	}
	return &x.Failing
}

type claimLeasesIn struct {
	Name string `path:"name"`
	Body wire.ClaimLeases
}

// claimLeases claims streams of a reaction by hand.
func claimLeases(c *call, in *claimLeasesIn) (wire.Leases, error) {
	b := in.Body
	if b.By == "" {
		return wire.Leases{}, fault.New(fault.Validation, "by is required: set it to the worker's name").With("pointer", "/by")
	}
	if b.Limit == 0 {
		b.Limit = 10
	}
	if b.Limit < 1 || b.Limit > 1000 {
		return wire.Leases{}, fault.New(fault.Validation, "limit must be between 1 and 1000, got %d", b.Limit).With("pointer", "/limit")
	}
	x, err := c.byHand(in.Name)
	if err != nil {
		return wire.Leases{}, err
	}
	lease := x.Options.Lease
	if b.LeaseMs != 0 {
		lease = span(b.LeaseMs)
	}
	if lease < time.Millisecond || lease > 24*time.Hour {
		return wire.Leases{}, fault.New(fault.Validation, "leaseMs must be between 1 and 86400000 (a day), got %d", lease.Milliseconds()).With("pointer", "/leaseMs")
	}
	signer, err := c.api.signers.Signer(c.ctx(), c.api.engine)
	if err != nil {
		return wire.Leases{}, err
	}
	out := wire.Leases{Leases: []wire.Lease{}}
	err = c.await(span(b.WaitMs), []string{store.DueTopic(x.Name)}, func() (found bool, err error) {
		if x, err = c.byHand(in.Name); err != nil {
			return false, err
		}
		needs := []wake.WorkKind{{Kind: wake.HeldReaction}, {Kind: wake.Reaction, Name: x.Name}}
		c.api.engine.Hub().PolledBy(c.key.Workspace, needs)
		some, found, err := handOut(c, needs, func(d holdfast.Doer, _ map[wake.WorkKind]bool) (out wire.Leases, until time.Time, err error) {
			out.Leases = []wire.Lease{}
			budget := store.NewBudget(store.PageBytes)
			for n := 0; err == nil && len(out.Leases) == n && n < b.Limit && !budget.Spent(); {
				limit := min(b.Limit-n, remote.AtOnce)
				n += limit
				var taken []*reactions.Lease
				taken, err = reactions.TakeAsked(c.ctx(), store.DoerOf(d), reactions.Ask{Reactions: []reactions.Info{x}, Holder: b.By, Limit: limit, Lease: lease, Events: leaseEvents, Budget: budget})
				for _, l := range taken {
					c.traceLease("claimed", l, l.Watermark)
					until = firstEnd(until, shapes.At(l.Until))
					w := wire.Lease{Stream: l.Stream, Epoch: l.Epoch, Token: signer.Lease(c.key.Workspace, x.Name, l.Stream, l.Epoch), Until: shapes.At(l.Until), Attempt: l.Attempt()}
					if err == nil {
						w.Events, err = withPositions(c, l.Stream, l.Events)
					}
					out.Leases = append(out.Leases, w)
				}
			}
			return out, until, err
		})
		if found {
			out = some
		}
		return found, err
	})
	return out, err
}

// byHand returns a reaction that can be claimed by hand, because no handler and no program serves
// it. A program that registered a reaction is recorded in its options; a program that only serves a
// registered reaction is known on its own nodes.
func (c *call) byHand(name string) (reactions.Info, error) {
	x, err := c.claimed(name)
	if err == nil && x.Options.Handler != "" {
		err = fault.New(fault.Conflict, "reaction %q is served by handler %q, so it cannot be claimed: put the reaction without a handler first", name, x.Options.Handler)
	}
	if err == nil && (x.Options.Program || c.api.engine.Reactions().Follows(&x.Definition)) {
		err = fault.New(fault.Conflict, "reaction %q is served by a Go program, so it cannot be claimed: use a different reaction. If the program no longer exists, put this reaction with different events, then put it again with its original events; its positions are kept", name)
	}
	return x, err
}

// claimed returns a reaction whose streams may have been claimed by hand. The holder of a token may
// end its lease even if the reaction is served otherwise by now.
func (c *call) claimed(name string) (reactions.Info, error) {
	if err := c.unrestricted(); err != nil {
		return reactions.Info{}, err
	}
	x, err := reactions.Get(c.ctx(), c.doer(), name)
	if err == nil && reactions.Reserved(name) {
		err = fault.New(fault.NotFound, "reaction %q does not exist", name)
	}
	return x, err
}

// checkLeaseToken verifies the token of a lease that was taken by hand.
func (c *call) checkLeaseToken(reaction, stream string, epoch int64, token string) error {
	if token == "" {
		return fault.New(fault.Validation, "token is required: use the token from the claim of this stream").With("pointer", "/token")
	}
	signer, err := c.api.signers.Signer(c.ctx(), c.doer())
	if err != nil {
		return err
	}
	return signer.CheckLease(token, c.key.Workspace, reaction, stream, epoch)
}

// longestWait is the maximum wait time of a long poll.
const longestWait = 50 * time.Second

// pause waits for a wake-up, at most for d.
func (c *call) pause(ctx context.Context, heard <-chan struct{}, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	begun := clock.Now()
	defer func() { watchOf(ctx).Waited += clock.Since(begun) }()
	select {
	case <-heard:
	case <-c.api.closing:
	case <-ctx.Done():
	}
}

// leaseEvents is the maximum number of events in a lease.
const leaseEvents = 100

type acksIn struct {
	Name string `path:"name"`
	Body wire.Acks
}

func ackLeases(c *call, in *acksIn) (wire.Acked, error) {
	if len(in.Body.Acks) == 0 || len(in.Body.Acks) > 1000 {
		return wire.Acked{}, fault.New(fault.Validation, "acks must have between 1 and 1000 elements, got %d", len(in.Body.Acks)).With("pointer", "/acks")
	}
	if _, err := c.claimed(in.Name); err != nil {
		return wire.Acked{}, err
	}
	at, err := c.doer().Partition(c.ctx(), store.Write)
	if err != nil {
		return wire.Acked{}, err
	}
	var ends []reactions.End
	var which []int // index of the result of each end
	out := wire.Acked{Results: make([]wire.AckResult, len(in.Body.Acks))}
	for i, a := range in.Body.Acks {
		if slices.ContainsFunc(in.Body.Acks[:i], func(o wire.Ack) bool { return o.Stream == a.Stream }) {
			return wire.Acked{}, fault.New(fault.Validation, "stream %q is listed twice: acknowledge it only once, with the version of its last handled event", a.Stream)
		}
		if err := checkEpoch(a.Epoch); err != nil {
			return wire.Acked{}, strictjson.Within(err, "/acks/"+strconv.Itoa(i))
		}
		if err := strictjson.Text("stream", a.Stream, 3*events.MaxName); err != nil {
			return wire.Acked{}, strictjson.Within(err, "/acks/"+strconv.Itoa(i)+"/stream")
		}
		if a.Version < 0 {
			err := fault.New(fault.Validation, "version must be 0 or more, got %d: use the version of the last handled event", a.Version)
			return wire.Acked{}, strictjson.Within(err, "/acks/"+strconv.Itoa(i)+"/version")
		}
		out.Results[i] = wire.AckResult{Stream: a.Stream, Status: "acked"}
		switch err := c.checkLeaseToken(in.Name, a.Stream, a.Epoch, a.Token); fault.CodeOf(err) {
		case "":
			ends = append(ends, reactions.End{Lease: reactions.ByHand(at, in.Name, a.Stream, a.Epoch), Done: a.Version})
			which = append(which, i)
		case fault.LeaseLost:
			out.Results[i].Status = string(fault.LeaseLost)
		default:
			return wire.Acked{}, strictjson.Within(err, "/acks/"+strconv.Itoa(i))
		}
	}
	refused, err := reactions.AckAsked(c.ctx(), c.doer(), ends)
	if err != nil {
		return wire.Acked{}, err
	}
	for i, f := range refused {
		if f == nil {
			c.traceLease("acked", ends[i].Lease, ends[i].Done)
			continue
		}
		r := &out.Results[which[i]]
		r.Status = string(f.Code)
		if version, ok := f.Fields["delivered"].(int64); ok {
			r.Delivered = &version
		}
	}
	return out, nil
}

// traceLease logs and counts what happened to a lease that a client claimed by hand.
func (c *call) traceLease(what string, l *reactions.Lease, version int64) {
	reactions.TalliesOf(c.api.engine).Trace(c.api.log, what, l, version)
}

type failIn struct {
	Name string `path:"name"`
	Body wire.FailLease
}

func failLease(c *call, in *failIn) (wire.FailedLease, error) {
	if err := checkEpoch(in.Body.Epoch); err != nil {
		return wire.FailedLease{}, err
	}
	if in.Body.Message == "" { // an empty message would not count as a failure
		return wire.FailedLease{}, fault.New(fault.Validation, "message is required: describe what went wrong").With("pointer", "/message")
	}
	x, err := c.claimed(in.Name)
	if err == nil {
		err = c.checkLeaseToken(in.Name, in.Body.Stream, in.Body.Epoch, in.Body.Token)
	}
	if err != nil {
		return wire.FailedLease{}, err
	}
	at, err := c.doer().Partition(c.ctx(), store.Write)
	if err != nil {
		return wire.FailedLease{}, err
	}
	b := in.Body
	retryable := b.Retryable == nil || *b.Retryable
	l := reactions.ByHand(at, in.Name, b.Stream, b.Epoch)
	f, err := reactions.Fail(c.ctx(), c.doer(), x, l, -1, b.Message, retryable) // -1: the first event after the watermark failed
	if err == nil {
		c.traceLease(f.What(), l, l.Watermark)
	}
	return wire.FailedLease{Blocked: f.Blocked, Retry: f.Failures, NotBefore: shapes.At(f.NotBefore)}, err
}

type snoozeIn struct {
	Name string `path:"name"`
	Body wire.SnoozeLease
}

func snoozeLease(c *call, in *snoozeIn) (wire.SnoozedLease, error) {
	b := in.Body
	err := checkEpoch(b.Epoch)
	if err == nil {
		err = checkDelay(b.DelayMs)
	}
	if err == nil {
		_, err = c.claimed(in.Name)
	}
	if err == nil {
		err = c.checkLeaseToken(in.Name, b.Stream, b.Epoch, b.Token)
	}
	if err != nil {
		return wire.SnoozedLease{}, err
	}
	at, err := c.doer().Partition(c.ctx(), store.Write)
	if err != nil {
		return wire.SnoozedLease{}, err
	}
	// -1: the lease is of the whole stream.
	dueAt, err := reactions.Snooze(c.ctx(), c.doer(), reactions.ByHand(at, in.Name, b.Stream, b.Epoch), -1, span(b.DelayMs))
	return wire.SnoozedLease{NotBefore: shapes.At(dueAt)}, err
}

type renewIn struct {
	Name string `path:"name"`
	Body wire.RenewLease
}

func renewLease(c *call, in *renewIn) (wire.Renewed, error) {
	if err := checkEpoch(in.Body.Epoch); err != nil {
		return wire.Renewed{}, err
	}
	x, err := c.claimed(in.Name)
	if err != nil {
		return wire.Renewed{}, err
	}
	at, err := c.doer().Partition(c.ctx(), store.Write)
	if err != nil {
		return wire.Renewed{}, err
	}
	lease := x.Options.Lease
	if in.Body.LeaseMs != 0 {
		lease = span(in.Body.LeaseMs)
	}
	if lease < time.Millisecond || lease > 24*time.Hour {
		return wire.Renewed{}, fault.New(fault.Validation, "leaseMs must be between 1 and 86400000 (a day), got %d", lease.Milliseconds()).With("pointer", "/leaseMs")
	}
	if err := c.checkLeaseToken(in.Name, in.Body.Stream, in.Body.Epoch, in.Body.Token); err != nil {
		return wire.Renewed{}, err
	}
	r, err := reactions.RenewOne(c.ctx(), c.doer(), reactions.ByHand(at, in.Name, in.Body.Stream, in.Body.Epoch), lease, 0)
	return wire.Renewed{Until: shapes.At(r.Until), CancelRequested: r.CancelRequested}, err
}

type repairIn struct {
	Name string `path:"name"`
	Body wire.Repair
}

func repair(c *call, how string, in *repairIn) (wire.Repaired, error) {
	f := stream.PositionFilter{Streams: in.Body.Streams}
	if f.Streams != nil && len(f.Streams) == 0 { // an empty list must not select all streams
		return wire.Repaired{}, fault.New(fault.Validation, "streams must not be empty: omit it to select all streams").With("pointer", "/streams")
	}
	if in.Name != every {
		f.Reaction = in.Name
		if _, err := reactions.Get(c.ctx(), c.doer(), in.Name); err != nil {
			return wire.Repaired{}, err
		}
	}
	if x := in.Body.Filter; x != nil {
		if len(in.Body.Streams) > 0 {
			return wire.Repaired{}, fault.New(fault.Validation, "set either streams or filter, not both")
		}
		f.Pattern, f.Blocked = x.Stream, x.Blocked
		switch x.Source {
		case "":
		case "event", "history":
			f.Source = stream.Source(x.Source)
		default:
			return wire.Repaired{}, fault.New(fault.Validation, "source must be event or history, got %q", x.Source).With("pointer", "/filter/source")
		}
	}
	done, err := map[string]func(context.Context, holdfast.Doer, string, stream.PositionFilter, ...stream.ActorOption) (stream.RepairResult, error){
		"unblock": stream.Unblock, "reset": stream.Reset, "skip": stream.Skip}[how](c.ctx(), c.doer(), in.Name, f, stream.By(c.actor()))
	return wire.Repaired{Streams: streamsOf(done.Repaired), Held: streamsOf(done.Leased), Pending: streamsOf(done.Pending)}, err
}

func streamsOf(all []stream.Position) []string {
	out := make([]string, len(all))
	for i, p := range all {
		out[i] = p.Stream
	}
	return out
}
