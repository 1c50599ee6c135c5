package cli

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type entitiesCommand struct {
	Create   entitiesCreate   `cmd:"" help:"Create an entity."`
	List     entitiesList     `cmd:"" help:"List the entities of a lifecycle."`
	Show     entitiesShow     `cmd:"" help:"Show an entity."`
	History  entitiesHistory  `cmd:"" help:"List the events of an entity."`
	Timeline entitiesTimeline `cmd:"" help:"List the events, refusals and effects of an entity, newest first."`
}

type entitiesCreate struct {
	idempotencyFlags
	Lifecycle string  `arg:"" help:"Lifecycle name."`
	ID        *string `setting:"-" name:"id" placeholder:"ID" help:"Entity id. Default: a new id."`
	Status    string  `setting:"-" placeholder:"STATUS" help:"Initial status. Default: the lifecycle's initial status."`
	Data      string  `setting:"-" placeholder:"JSON" help:"Entity data: a JSON object, or @FILE."`
}

func (c *entitiesCreate) Run(ctx context.Context, to *target) error {
	data, bad := document("--data", c.Data)
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	e, err := d.CreateEntity(ctx, c.Lifecycle, wire.NewEntity{ID: c.ID, Status: c.Status, Data: data}, c.options(d)...)
	return d.show(entityFacts(e), err)
}

// entityFacts shows an entity, after the pairs in before.
func entityFacts(e wire.Entity, before ...string) *table {
	claim := ""
	if x := e.Claim; x != nil {
		claim = x.StepKey + " by " + x.Requester + " until " + at(x.Until)
		if x.Uncertain {
			claim = x.StepKey + " by " + x.Requester + ", uncertain: see \"holdfast operations list\""
		}
	}
	return facts(append(before, "lifecycle", e.Lifecycle, "id", e.ID, "status", e.Status, "version", number64(e.Version), "data", string(e.Data),
		"claim", claim, "created", at(e.CreatedAt), "updated", at(e.UpdatedAt))...)
}

type entitiesList struct {
	pageFlags
	Lifecycle string `arg:"" help:"Lifecycle name."`
	Status    string `setting:"-" placeholder:"STATUS" help:"List only entities with this status."`
	timeFlags
}

func (c *entitiesList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListEntitiesPage(ctx, c.Lifecycle, client.EntityFilter{Status: c.Status, TimeRange: c.times()}, c.page(), d.raw())
	t := &table{heads: []string{"ID", "STATUS", "VERSION", "UPDATED", "CLAIMED BY"}}
	for _, e := range l.Items {
		by := ""
		if e.Claim != nil {
			by = e.Claim.Requester + " (" + e.Claim.StepKey + ")"
		}
		t.add(e.ID, e.Status, number64(e.Version), at(e.UpdatedAt), by)
	}
	return d.showList(t, l.Next, err)
}

type entityArgs struct {
	Lifecycle string `arg:"" help:"Lifecycle name."`
	ID        string `arg:"" name:"id" help:"Entity id."`
}

type entitiesShow struct {
	targetFlags
	entityArgs
	At *int64 `setting:"-" placeholder:"VERSION" help:"Show the entity as it was at this version. Default: the current version."`
}

func (c *entitiesShow) Run(ctx context.Context, d *connection) error {
	o := []client.Option{d.raw()}
	if c.At != nil {
		o = append(o, client.At(*c.At))
	}
	e, err := d.GetEntity(ctx, c.Lifecycle, c.ID, o...)
	return d.show(entityFacts(e), err)
}

type entitiesHistory struct {
	pageFlags
	entityArgs
}

func (c *entitiesHistory) Run(ctx context.Context, d *connection) error {
	l, err := d.ReadEntityHistoryPage(ctx, c.Lifecycle, c.ID, c.page(), d.raw())
	return d.showList(eventTable(l.Items), l.Next, err)
}

func eventTable(all []wire.Event) *table {
	t := &table{heads: []string{"VERSION", "NAME", "AT", "ACTOR", "DATA"}}
	for _, e := range all {
		t.add(number64(e.Version), e.Name, at(e.At), e.Actor, string(e.Data))
	}
	return t
}

// stepFlags are the flags of commands that fire or claim a step.
type stepFlags struct {
	As            string `setting:"-" required:"" placeholder:"REQUESTER" help:"Requester to act for. The API key must be allowed to act for this requester."`
	Input         string `setting:"-" placeholder:"JSON" help:"Step input: JSON, or @FILE."`
	ExpectVersion *int64 `setting:"-" placeholder:"N" help:"Fail unless the entity is at this version."`
}

type fireCommand struct {
	idempotencyFlags
	stepFlags
	entityArgs
	Step string        `arg:"" help:"Step key."`
	Wait time.Duration `setting:"-" placeholder:"DURATION" help:"How long to wait for a worker. Default: 30s."`
}

func (c *fireCommand) Run(ctx context.Context, to *target) error {
	input, bad := document("--input", c.Input)
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	o := c.options(d)
	if c.Wait != 0 {
		o = append(o, client.Wait(c.Wait))
	}
	fired, err := d.FireStep(ctx, c.Lifecycle, c.ID, c.Step, wire.Fire{Requester: c.As, Input: input, ExpectedVersion: c.ExpectVersion}, o...)
	return d.show(entityFacts(fired.Entity, "outcome", fired.Outcome, "operation", fired.Operation, "output", string(fired.Output)), err)
}
