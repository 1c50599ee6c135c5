package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type claimsCommand struct {
	List claimsList `cmd:"" help:"List who works on what."`
}

// stateFlags choose operations.
type stateFlags struct {
	State string `setting:"-" enum:",held,due,uncertain" default:"" placeholder:"STATE" help:"Only those that are held, due or uncertain."`
}

func (f stateFlags) filter() client.OperationFilter { return client.OperationFilter{State: f.State} }

type claimsList struct {
	doorFlags
	pageFlags
	stateFlags
}

// Help is shown by kong.
func (claimsList) Help() string {
	return `    holdfast claims list --url http://127.0.0.1:7070
    holdfast claims list --state uncertain --url http://127.0.0.1:7070`
}

// Run lists claims.
func (c *claimsList) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListClaimsPage(ctx, c.filter(), c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"LIFECYCLE", "ENTITY", "STATUS", "STEP", "REQUESTER", "STATE", "UNTIL", "OPERATION"}}
		for _, x := range l.Items {
			t.add(x.Lifecycle, x.Entity, x.Status, x.StepKey, x.Requester, x.Phase, at(x.Until), x.Operation)
		}
		return d.showList(raw, t, l.Next)
	})
}

type claimCommand struct {
	Take    claimTake    `cmd:"" help:"Take the claim of a step, to do its work elsewhere."`
	Renew   claimRenew   `cmd:"" help:"Extend a claim."`
	Settle  claimSettle  `cmd:"" help:"End a claim with what came of it."`
	Release claimRelease `cmd:"" help:"Give a claim back."`
}

type claimTake struct {
	doorFlags
	onceFlags
	stepFlags
	entityArgs
	Step  string        `arg:"" help:"The step's key."`
	Lease time.Duration `setting:"-" placeholder:"DURATION" help:"How long it is held. By default as the lifecycle says."`
}

// Help is shown by kong.
func (claimTake) Help() string {
	return `The token is told this once. Who has it may renew, settle and release the claim:

    holdfast claim take invoice i1 close --as admin --lease 5m --url http://127.0.0.1:7070 --workspace demo-invoices
` + forServer
}

// Run takes a claim.
func (c *claimTake) Run(ctx context.Context, p *program, k *kong.Context) error {
	input, err := document("--input", c.Input)
	if err == nil {
		err = positive("--lease", c.Lease)
	}
	if err != nil {
		return err
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		in := wire.NewClaim{StepKey: c.Step, Requester: c.As, Input: input, LeaseMs: wire.Ms(c.Lease), ExpectedVersion: c.ExpectVersion}
		got, err := d.ClaimStep(ctx, c.Lifecycle, c.ID, in, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, entityFacts(got.Entity, "token", got.Claim.Token, "until", at(got.Claim.Until)))
	})
}

type claimRenew struct {
	doorFlags
	onceFlags
	Token string        `arg:"" help:"The token that take told."`
	Lease time.Duration `setting:"-" placeholder:"DURATION" help:"How long it is held. By default as the lifecycle says."`
}

// Help is shown by kong.
func (claimRenew) Help() string {
	return `    holdfast claim renew "$TOKEN" --lease 5m --url http://127.0.0.1:7070 --workspace demo-invoices`
}

// Run renews a claim.
func (c *claimRenew) Run(ctx context.Context, p *program, k *kong.Context) error {
	if err := positive("--lease", c.Lease); err != nil {
		return err
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		got, err := d.RenewClaim(ctx, c.Token, wire.Renew{LeaseMs: wire.Ms(c.Lease)}, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, facts("until", at(got.Until)))
	})
}

type claimSettle struct {
	doorFlags
	onceFlags
	Token   string `arg:"" help:"The token that take told."`
	Outcome string `arg:"" enum:"success,failure,invalid" help:"What came of it: success, failure or invalid."`
	Data    string `setting:"-" placeholder:"JSON" help:"What changes in the entity's data: a merge patch, or @FILE."`
	Message string `setting:"-" placeholder:"TEXT" help:"Why it failed."`
}

// Help is shown by kong.
func (claimSettle) Help() string {
	return `Settled again with the same outcome, it answers the same:

    holdfast claim settle "$TOKEN" success --data '{"receipt": "R1"}' --url http://127.0.0.1:7070 --workspace demo-invoices`
}

// Run settles a claim.
func (c *claimSettle) Run(ctx context.Context, p *program, k *kong.Context) error {
	data, err := document("--data", c.Data)
	if err != nil {
		return err
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		done, err := d.SettleClaim(ctx, c.Token, wire.Settle{Outcome: c.Outcome, Data: data, Message: c.Message}, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, entityFacts(done.Entity))
	})
}

type claimRelease struct {
	doorFlags
	onceFlags
	Token  string `arg:"" help:"The token that take told."`
	Reason string `setting:"-" placeholder:"TEXT" help:"Why, for the history."`
}

// Help is shown by kong.
func (claimRelease) Help() string {
	return `    holdfast claim release "$TOKEN" --reason "not today" --url http://127.0.0.1:7070 --workspace demo-invoices`
}

// Run releases a claim.
func (c *claimRelease) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		done, err := d.ReleaseClaim(ctx, c.Token, wire.Release{Reason: c.Reason}, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, entityFacts(done.Entity))
	})
}

type operationsCommand struct {
	List     operationsList     `cmd:"" help:"List operations that are not at their end, or have contradictions."`
	Resolve  operationsResolve  `cmd:"" help:"Say what happened, where that is not known."`
	Withdraw operationsWithdraw `cmd:"" help:"Withdraw an operation that nobody holds."`
	Ack      operationsAck      `cmd:"" help:"Acknowledge contradictions of an operation."`
}

type operationsList struct {
	doorFlags
	pageFlags
	State string `setting:"-" enum:",held,due,uncertain,contradicted,lost" default:"" placeholder:"STATE" help:"Only those that are held, due, uncertain, contradicted or lost."`
}

// Help is shown by kong.
func (operationsList) Help() string {
	return `Those that are uncertain wait for a person:

    holdfast operations list --state uncertain --url http://127.0.0.1:7070

Those that are contradicted have an effect that was called by a holder without a lease. Compare the
call with the effects of the operation, put right what is wrong, then acknowledge it:

    holdfast operations list --state contradicted --url http://127.0.0.1:7070

Those that are lost were handed out to workers of whom nothing was heard; they are handed out again after growing
pauses. Look for workers that die as soon as they receive them:

    holdfast operations list --state lost --url http://127.0.0.1:7070`
}

// Run lists operations.
func (c *operationsList) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		l, err := d.ListOperationsPage(ctx, client.OperationFilter{State: c.State}, c.page(), client.Raw(&raw))
		if err != nil {
			return err
		}
		t := &table{heads: []string{"ID", "SUBJECT", "HANDLER", "STATE", "SINCE", "EFFECTS", "CONTRADICTIONS"}}
		for _, x := range l.Items {
			t.add(x.ID, x.Subject, x.Handler, x.State, at(x.Since), effectsOf(x), contradictionsOf(x.Contradictions))
		}
		return d.showList(raw, t, l.Next)
	})
}

func effectsOf(x wire.Operation) string {
	all := make([]string, len(x.Effects))
	for i, e := range x.Effects {
		all[i] = e.Name
		if e.Ordinal != 0 {
			all[i] += "#" + strconv.Itoa(e.Ordinal)
		}
		all[i] += " " + e.State
	}
	return strings.Join(all, ", ")
}

func contradictionsOf(some []wire.Contradiction) string {
	all := make([]string, len(some))
	for i, c := range some {
		all[i] = c.ID + " " + c.Name + " " + c.State
	}
	return strings.Join(all, ", ")
}

type operationsAck struct {
	doorFlags
	onceFlags
	ID             string   `arg:"" name:"id" help:"The operation's id."`
	Contradictions []string `arg:"" name:"contradiction" help:"The ids of the contradictions that were seen."`
}

// Help is shown by kong.
func (operationsAck) Help() string {
	return `Record that a person has seen them. They are kept, and not listed any more:

    holdfast operations ack "$OPERATION" "$CONTRADICTION" --url http://127.0.0.1:7070`
}

// Run acknowledges contradictions.
func (c *operationsAck) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		left, err := d.AcknowledgeContradictions(ctx, c.ID, wire.Acknowledge{Contradictions: c.Contradictions}, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.show(raw, facts("contradictions left", strconv.Itoa(len(left.Contradictions))))
	})
}

type operationsWithdraw struct {
	doorFlags
	onceFlags
	ID     string `arg:"" name:"id" help:"The operation's id."`
	Reason string `setting:"-" placeholder:"TEXT" help:"Why, for its history."`
}

// Help is shown by kong.
func (operationsWithdraw) Help() string {
	return `Take back an operation that is due, such as one that waits for a worker that does not come. The entity
goes back to where the step starts. If an effect of it may have happened, the operation is uncertain
instead: resolve it.

    holdfast operations list --state due --url http://127.0.0.1:7070
    holdfast operations withdraw "$OPERATION" --reason "no such worker" --url http://127.0.0.1:7070`
}

// Run withdraws an operation.
func (c *operationsWithdraw) Run(ctx context.Context, p *program, k *kong.Context) error {
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		done, err := d.WithdrawOperation(ctx, c.ID, wire.Withdraw{Reason: c.Reason}, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.showResolved(raw, c.ID, done)
	})
}

type operationsResolve struct {
	doorFlags
	onceFlags
	ID          string   `arg:"" name:"id" help:"The operation's id."`
	Happened    []string `setting:"-" sep:"none" placeholder:"EFFECT[=JSON]" help:"An effect that happened, with its result; charge#1 is the second charge. It may be given again."`
	NotHappened []string `setting:"-" sep:"none" placeholder:"EFFECT" help:"An effect that did not happen. It may be given again."`
	Outcome     string   `setting:"-" enum:",success,failure,invalid" default:"" placeholder:"OUTCOME" help:"End it with success, failure or invalid. Without one it goes on."`
}

// Help is shown by kong.
func (operationsResolve) Help() string {
	return `It then goes on from there, or ends with the outcome:

    holdfast operations resolve "$OPERATION" --happened 'charge="R1"' --url http://127.0.0.1:7070
    holdfast operations resolve "$OPERATION" --not-happened charge --outcome failure --url http://127.0.0.1:7070`
}

// Run resolves an operation.
func (c *operationsResolve) Run(ctx context.Context, p *program, k *kong.Context) error {
	in := wire.Resolve{Outcome: c.Outcome}
	for flag, all := range map[string][]string{"--happened": c.Happened, "--not-happened": c.NotHappened} {
		for _, text := range all {
			x, err := knownEffect(flag, text)
			if err != nil {
				return err
			}
			x.Happened = flag == "--happened"
			in.Effects = append(in.Effects, x)
		}
	}
	return c.through(ctx, p, k, func(d *door) error {
		var raw json.RawMessage
		done, err := d.ResolveOperation(ctx, c.ID, in, c.options(&raw)...)
		if err != nil {
			return err
		}
		return d.showResolved(raw, c.ID, done)
	})
}

// showResolved shows an operation that a person has ended, or has not.
func (d *door) showResolved(raw json.RawMessage, id string, done wire.Resolved) error {
	if done.Operation == nil {
		return d.show(raw, facts("operation", id, "state", "at its end"))
	}
	x := *done.Operation
	return d.show(raw, facts("operation", x.ID, "subject", x.Subject, "state", x.State, "effects", effectsOf(x)))
}

// knownEffect reads NAME[#ORDINAL][=RESULT].
func knownEffect(flag, text string) (wire.KnownEffect, error) {
	var x wire.KnownEffect
	name, result, some := strings.Cut(text, "=")
	if some {
		if flag != "--happened" {
			return x, misuse("what did not happen has no result")
		}
		raw, err := document(flag, result)
		if err != nil {
			return x, err
		}
		x.Result = raw
	}
	name, ordinal, some := strings.Cut(name, "#")
	if some {
		n, err := strconv.Atoi(ordinal)
		if err != nil || n < 0 {
			return x, misuse("%s wants a number after #, and has %q", flag, ordinal)
		}
		x.Ordinal = n
	}
	x.Name = name
	return x, nil
}
