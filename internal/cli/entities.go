package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

// forServer is told by verbs that need a lifecycle.
const forServer = `
A lifecycle lives in a program that has its actions, so this is for a server (--url).`

type entitiesCommand struct {
	Create  entitiesCreate  `cmd:"" help:"Make an entity."`
	List    entitiesList    `cmd:"" help:"List the entities of a lifecycle."`
	Show    entitiesShow    `cmd:"" help:"Show an entity."`
	History entitiesHistory `cmd:"" help:"Tell what happened to an entity."`
}

type entitiesCreate struct {
	doorFlags
	onceFlags
	Lifecycle string `arg:"" help:"The lifecycle's name."`
	ID        string `setting:"-" name:"id" placeholder:"ID" help:"Its id. By default a new one."`
	Status    string `setting:"-" placeholder:"STATUS" help:"Where it begins. By default where the lifecycle says."`
	Data      string `setting:"-" placeholder:"JSON" help:"Its data: a JSON object, or @FILE."`
}

// Help is shown by kong.
func (entitiesCreate) Help() string {
	return `An id that is taken is refused:

    holdfast entities create invoice --id i1 --data '{"cents": 100}' --url http://127.0.0.1:7070 --workspace demo-invoices
` + forServer
}

// Run makes an entity.
func (c *entitiesCreate) Run(ctx context.Context, p *program, k *kong.Context) error {
	data, err := document("--data", c.Data)
	if err != nil {
		return err
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		e, err := d.CreateEntity(ctx, c.Lifecycle, wire.NewEntity{ID: c.ID, Status: c.Status, Data: data}, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, entityFacts(e))
	})
}

// entityFacts shows an entity, and first what led to it.
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
	doorFlags
	pageFlags
	Lifecycle string `arg:"" help:"The lifecycle's name."`
	Status    string `setting:"-" placeholder:"STATUS" help:"Only those that are there."`
}

// Help is shown by kong.
func (entitiesList) Help() string {
	return `    holdfast entities list invoice --url http://127.0.0.1:7070 --workspace demo-invoices
    holdfast entities list invoice --status closing -o json --url http://127.0.0.1:7070 --workspace demo-invoices
` + forServer
}

// Run lists entities.
func (c *entitiesList) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListEntitiesPage(ctx, c.Lifecycle, client.EntityFilter{Status: c.Status}, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"ID", "STATUS", "VERSION", "UPDATED", "CLAIMED BY"}}
		for _, e := range l.Items {
			by := ""
			if e.Claim != nil {
				by = e.Claim.Requester + " (" + e.Claim.StepKey + ")"
			}
			t.add(e.ID, e.Status, number64(e.Version), at(e.UpdatedAt), by)
		}
		return d.showList(raw, t, l.Next)
	})
}

type entityArgs struct {
	Lifecycle string `arg:"" help:"The lifecycle's name."`
	ID        string `arg:"" name:"id" help:"The entity's id."`
}

type entitiesShow struct {
	doorFlags
	entityArgs
}

// Help is shown by kong.
func (entitiesShow) Help() string {
	return `    holdfast entities show invoice i1 --url http://127.0.0.1:7070 --workspace demo-invoices
` + forServer
}

// Run shows an entity.
func (c *entitiesShow) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		e, err := d.GetEntity(ctx, c.Lifecycle, c.ID, client.Raw(&raw))
		if err != nil {
			return err
		}
		return d.show(raw, entityFacts(e))
	})
}

type entitiesHistory struct {
	doorFlags
	pageFlags
	entityArgs
}

// Help is shown by kong.
func (entitiesHistory) Help() string {
	return `    holdfast entities history invoice i1 --url http://127.0.0.1:7070 --workspace demo-invoices
` + forServer
}

// Run tells what happened.
func (c *entitiesHistory) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.GetHistoryPage(ctx, c.Lifecycle, c.ID, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		return d.showList(raw, eventTable(l.Items), l.Next)
	})
}

func eventTable(all []wire.Event) *table {
	t := &table{heads: []string{"VERSION", "NAME", "AT", "ACTOR", "DATA"}}
	for _, e := range all {
		t.add(number64(e.Version), e.Name, at(e.At), e.Actor, string(e.Data))
	}
	return t
}

// stepFlags are for what does a step.
type stepFlags struct {
	As            string `setting:"-" required:"" placeholder:"REQUESTER" help:"On whose behalf: one that the key may speak for."`
	Input         string `setting:"-" placeholder:"JSON" help:"What the step is given: JSON, or @FILE."`
	ExpectVersion *int64 `setting:"-" placeholder:"N" help:"Only if it is at this version."`
}

type fireCommand struct {
	doorFlags
	onceFlags
	stepFlags
	entityArgs
	Step string        `arg:"" help:"The step's key."`
	Wait time.Duration `setting:"-" placeholder:"DURATION" help:"How long to wait for a worker. By default 30s."`
}

// Help is shown by kong.
func (fireCommand) Help() string {
	return `Under --key-once it is done once, however often it is sent. What goes on without the
caller (pending) or waits for a person (uncertain) is told as its outcome, and is no
failure:

    holdfast fire invoice i1 close --as admin --url http://127.0.0.1:7070 --workspace demo-invoices
    holdfast fire invoice i1 pay --as admin --key-once order-7 --url http://127.0.0.1:7070 --workspace demo-invoices
` + forServer
}

// Run fires a step.
func (c *fireCommand) Run(ctx context.Context, p *program, k *kong.Context) error {
	input, err := document("--input", c.Input)
	if err != nil {
		return err
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		o := c.options(&raw)
		if c.Wait != 0 {
			o = append(o, client.Wait(c.Wait))
		}
		fired, err := d.FireStep(ctx, c.Lifecycle, c.ID, c.Step, wire.Fire{Requester: c.As, Input: input, ExpectedVersion: c.ExpectVersion}, o...)
		if err != nil {
			return err
		}
		return d.show(raw, entityFacts(fired.Entity, "outcome", fired.Outcome, "operation", fired.Operation, "output", string(fired.Output)))
	})
}
