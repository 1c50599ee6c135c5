package cli

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type bulkCommand struct {
	RetryRuns  bulkRetryRuns  `cmd:"" help:"Retry failed runs."`
	CancelRuns bulkCancelRuns `cmd:"" help:"Cancel runs."`
	PauseRuns  bulkPauseRuns  `cmd:"" help:"Pause running runs."`
	ResumeRuns bulkResumeRuns `cmd:"" help:"Resume paused runs."`
	Unblock    bulkUnblock    `cmd:"" help:"Unblock reactions on selected streams."`
	Skip       bulkSkip       `cmd:"" help:"Skip the failed event on each selected stream of a reaction."`
	Release    bulkRelease    `cmd:"" help:"Release leased operations whose effects have not begun."`
	Resolve    bulkResolve    `cmd:"" help:"Resolve uncertain operations with one answer."`
	Withdraw   bulkWithdraw   `cmd:"" help:"Withdraw operations that are due."`
	List       bulkList       `cmd:"" help:"List the bulks of a workspace, newest first."`
	Show       bulkShow       `cmd:"" help:"Show a bulk and its progress."`
	Members    bulkMembers    `cmd:"" help:"List the members of a bulk, and the result of each."`
	Cancel     bulkCancel     `cmd:"" help:"Cancel a bulk: no further member is acted on."`
}

// bulkFlags are the flags of every command that starts a bulk.
type bulkFlags struct {
	idempotencyFlags
	ID     []string `arg:"" optional:"" help:"Ids of the members."`
	All    bool     `setting:"-" help:"Select all that permit the action."`
	DryRun bool     `setting:"-" help:"Show what would be acted on, and write nothing."`
}

// start starts a bulk. An empty selection is an error: it does not select all.
func (f bulkFlags) start(ctx context.Context, to *target, in wire.NewBulk, filter wire.BulkFilter) error {
	filtered := !reflect.ValueOf(filter).IsZero()
	var bad error
	switch {
	case len(f.ID) > 0 && (filtered || f.All), f.All && filtered:
		bad = misuse("select members in only one way: by id, with the flags of a filter, or with --all")
	case len(f.ID) > 0:
		in.IDs = f.ID
	case filtered || f.All:
		in.Filter = &filter
	default:
		bad = misuse("no members were selected: list their ids, or use the flags of a filter or --all")
	}
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	in.DryRun = f.DryRun
	x, err := d.StartBulk(ctx, in, f.options(d)...)
	if err != nil || x.Preview == nil {
		return d.show(bulkFacts(x.Bulk), err)
	}
	fmt.Fprintf(d.stderr, "dry run: %s would act on %d members and refuse %d; the first 100 of each are listed\n", in.Action, x.Preview.Total, x.Preview.RefusedTotal)
	return d.show(memberTable(append(x.Preview.Members, x.Preview.Refused...)), nil)
}

func bulkFacts(b *wire.Bulk) *table {
	if b == nil {
		return nil
	}
	return facts("bulk", b.ID, "action", b.Action, "status", b.Status, "actor", b.Actor, "total", number64(b.Total), "pending", number64(b.Pending), "running", number64(b.Running),
		"done", number64(b.Done), "refused", number64(b.Refused), "cancelled", number64(b.Cancelled), "created", at(b.CreatedAt), "updated", at(b.UpdatedAt))
}

func memberTable(all []wire.BulkMember) *table {
	t := &table{heads: []string{"ID", "STATE", "STATUS", "CODE", "MESSAGE"}}
	for _, m := range all {
		t.add(m.ID, m.State, m.Status, m.Code, m.Message)
	}
	return t
}

// bulkTimeFlags select by time.
type bulkTimeFlags struct {
	Since time.Time `setting:"-" placeholder:"TIME" help:"Only those that began at this time (RFC 3339) or later."`
	Until time.Time `setting:"-" placeholder:"TIME" help:"Only those that began before this time (RFC 3339)."`
}

func (f bulkTimeFlags) in(filter wire.BulkFilter) wire.BulkFilter {
	if !f.Since.IsZero() {
		filter.Since = &wire.Time{Time: f.Since}
	}
	if !f.Until.IsZero() {
		filter.Until = &wire.Time{Time: f.Until}
	}
	return filter
}

// bulkRuns are the flags of commands on runs.
type bulkRuns struct {
	bulkFlags
	bulkTimeFlags
	Definition string `setting:"-" placeholder:"ID" help:"Only runs of this definition, as name@version."`
}

func (f bulkRuns) run(ctx context.Context, to *target, action, status string) error {
	return f.start(ctx, to, wire.NewBulk{Action: action}, f.in(wire.BulkFilter{Status: status, DefinitionID: f.Definition}))
}

type bulkRetryRuns struct{ bulkRuns }

func (c *bulkRetryRuns) Run(ctx context.Context, to *target) error {
	return c.run(ctx, to, "run.retry", "")
}

type bulkCancelRuns struct {
	bulkRuns
	Status string `setting:"-" enum:",PENDING,RUNNING,WAITING,PAUSED" default:"" placeholder:"STATUS" help:"Only runs with this status: PENDING, RUNNING, WAITING or PAUSED."`
}

func (c *bulkCancelRuns) Run(ctx context.Context, to *target) error {
	return c.run(ctx, to, "run.cancel", c.Status)
}

type bulkPauseRuns struct{ bulkRuns }

func (c *bulkPauseRuns) Run(ctx context.Context, to *target) error {
	return c.run(ctx, to, "run.pause", "")
}

type bulkResumeRuns struct{ bulkRuns }

func (c *bulkResumeRuns) Run(ctx context.Context, to *target) error {
	return c.run(ctx, to, "run.resume", "")
}

// bulkStreams are the flags of repairs. The id of a member is reaction/stream.
type bulkStreams struct {
	bulkFlags
	Reaction string `setting:"-" placeholder:"NAME" help:"Only streams of this reaction."`
	Matching string `setting:"-" placeholder:"RE2" help:"Only streams whose names match this regular expression (RE2)."`
	Source   string `setting:"-" enum:",event,history" default:"" placeholder:"SOURCE" help:"Only user streams (event) or histories (history)."`
}

func (f bulkStreams) filter() wire.BulkFilter {
	return wire.BulkFilter{Reaction: f.Reaction, Stream: f.Matching, Source: f.Source}
}

type bulkUnblock struct{ bulkStreams }

func (c *bulkUnblock) Run(ctx context.Context, to *target) error {
	return c.start(ctx, to, wire.NewBulk{Action: "reaction.unblock"}, c.filter())
}

type bulkSkip struct {
	bulkStreams
	Blocked *bool `setting:"-" negatable:"" help:"Blocked streams, which is the default, or, with --no-blocked, streams that wait for a retry."`
}

func (c *bulkSkip) Run(ctx context.Context, to *target) error {
	f := c.filter()
	f.Blocked = c.Blocked
	return c.start(ctx, to, wire.NewBulk{Action: "reaction.skip"}, f)
}

// bulkOperations are the flags of interventions in operations.
type bulkOperations struct {
	bulkFlags
	bulkTimeFlags
	Lifecycle string `setting:"-" placeholder:"NAME" help:"Only operations of entities of this lifecycle."`
}

func (f bulkOperations) filter() wire.BulkFilter {
	return f.in(wire.BulkFilter{Lifecycle: f.Lifecycle})
}

type bulkRelease struct {
	bulkOperations
	Reason string `setting:"-" placeholder:"TEXT" help:"Reason, recorded in the audit."`
}

func (c *bulkRelease) Run(ctx context.Context, to *target) error {
	return c.start(ctx, to, wire.NewBulk{Action: "operation.release", Reason: c.Reason}, c.filter())
}

type bulkResolve struct {
	bulkOperations
	Definition string `setting:"-" placeholder:"ID" help:"Only operations of steps of this definition, as name@version."`
	Happened   *bool  `setting:"-" negatable:"" help:"The unknown effects happened or, with --no-happened, did not happen."`
	Outcome    string `setting:"-" enum:",success,failure,invalid" default:"" placeholder:"OUTCOME" help:"Outcome that ends the operations: success, failure or invalid. Without an outcome, they resume."`
}

func (c *bulkResolve) Run(ctx context.Context, to *target) error {
	f := c.filter()
	f.DefinitionID = c.Definition
	return c.start(ctx, to, wire.NewBulk{Action: "operation.resolve", Happened: c.Happened, Outcome: c.Outcome}, f)
}

type bulkWithdraw struct {
	bulkOperations
	Reason string `setting:"-" placeholder:"TEXT" help:"Reason, recorded in the audit."`
}

func (c *bulkWithdraw) Run(ctx context.Context, to *target) error {
	return c.start(ctx, to, wire.NewBulk{Action: "operation.withdraw", Reason: c.Reason}, c.filter())
}

type bulkArg struct {
	ID string `arg:"" help:"Bulk id."`
}

type bulkList struct {
	pageFlags
}

func (c *bulkList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListBulksPage(ctx, c.page(), d.raw())
	t := &table{heads: []string{"BULK", "ACTION", "STATUS", "ACTOR", "TOTAL", "DONE", "REFUSED", "CREATED"}}
	for _, b := range l.Items {
		t.add(b.ID, b.Action, b.Status, b.Actor, number64(b.Total), number64(b.Done), number64(b.Refused), at(b.CreatedAt))
	}
	return d.showList(t, l.Next, err)
}

type bulkShow struct {
	targetFlags
	bulkArg
}

func (c *bulkShow) Run(ctx context.Context, d *connection) error {
	b, err := d.GetBulk(ctx, c.ID, d.raw())
	return d.show(bulkFacts(&b), err)
}

type bulkMembers struct {
	pageFlags
	bulkArg
	Status string `setting:"-" enum:",pending,waiting,running,done,refused,cancelled" default:"" placeholder:"STATUS" help:"List only members with this status: pending, waiting, running, done, refused or cancelled."`
}

func (c *bulkMembers) Run(ctx context.Context, d *connection) error {
	l, err := d.ListBulkMembersPage(ctx, c.ID, client.BulkMemberFilter{Status: c.Status}, c.page(), d.raw())
	return d.showList(memberTable(l.Items), l.Next, err)
}

type bulkCancel struct {
	idempotencyFlags
	bulkArg
}

func (c *bulkCancel) Run(ctx context.Context, d *connection) error {
	b, err := d.CancelBulk(ctx, c.ID, c.options(d)...)
	return d.show(bulkFacts(&b), err)
}
