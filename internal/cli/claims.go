package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/wire"
)

type claimsCommand struct {
	List claimsList `cmd:"" help:"List the claims of a workspace."`
}

type claimsList struct {
	pageFlags
	State string `setting:"-" enum:",held,due,uncertain" default:"" placeholder:"STATE" help:"List only claims in this state: held, due or uncertain."`
}

func (c *claimsList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListClaimsPage(ctx, client.ClaimFilter{Phase: c.State}, c.page(), d.raw())
	t := &table{heads: []string{"LIFECYCLE", "ENTITY", "STATUS", "STEP", "REQUESTER", "STATE", "UNTIL", "OPERATION"}}
	for _, x := range l.Items {
		t.add(x.Lifecycle, x.Entity, x.Status, x.StepKey, x.Requester, x.Phase, at(x.Until), x.Operation)
	}
	return d.showList(t, l.Next, err)
}

type claimCommand struct {
	Take    claimTake    `cmd:"" help:"Claim a step and print the claim's token."`
	Renew   claimRenew   `cmd:"" help:"Renew a claim's lease."`
	Settle  claimSettle  `cmd:"" help:"Settle a claim with an outcome."`
	Release claimRelease `cmd:"" help:"End a claim with the outcome failure."`
}

type claimTake struct {
	idempotencyFlags
	stepFlags
	entityArgs
	Step  string        `arg:"" help:"Step key."`
	Lease time.Duration `setting:"-" placeholder:"DURATION" help:"Duration of the lease. Default: the lifecycle's stuck_after."`
}

func (c *claimTake) Run(ctx context.Context, to *target) error {
	input, bad := document("--input", c.Input)
	d, err := to.openUnless(ctx, bad, notNegative("--lease", c.Lease))
	if err != nil {
		return err
	}
	in := wire.NewClaim{StepKey: c.Step, Requester: c.As, Input: input, LeaseMs: wire.Ms(c.Lease), ExpectedVersion: c.ExpectVersion}
	got, err := d.ClaimStep(ctx, c.Lifecycle, c.ID, in, c.options(d)...)
	return d.show(entityFacts(got.Entity, "token", got.Claim.Token, "until", at(got.Claim.Until)), err)
}

type claimRenew struct {
	idempotencyFlags
	Token string        `arg:"" help:"Claim token, as printed by \"claim take\"."`
	Lease time.Duration `setting:"-" placeholder:"DURATION" help:"Duration of the lease. Default: 5m."`
}

func (c *claimRenew) Run(ctx context.Context, to *target) error {
	d, err := to.openUnless(ctx, notNegative("--lease", c.Lease))
	if err != nil {
		return err
	}
	got, err := d.RenewClaim(ctx, c.Token, wire.Renew{LeaseMs: wire.Ms(c.Lease)}, c.options(d)...)
	return d.show(facts("until", at(got.Until)), err)
}

type claimSettle struct {
	idempotencyFlags
	Token   string `arg:"" help:"Claim token, as printed by \"claim take\"."`
	Outcome string `arg:"" enum:"success,failure,invalid" help:"Outcome: success, failure or invalid."`
	Data    string `setting:"-" placeholder:"JSON" help:"Merge patch for the entity's data: JSON, or @FILE."`
	Message string `setting:"-" placeholder:"TEXT" help:"Reason for a failure."`
}

func (c *claimSettle) Run(ctx context.Context, to *target) error {
	data, bad := document("--data", c.Data)
	d, err := to.openUnless(ctx, bad)
	if err != nil {
		return err
	}
	done, err := d.SettleClaim(ctx, c.Token, wire.Settle{Outcome: c.Outcome, Data: data, Message: c.Message}, c.options(d)...)
	return d.show(entityFacts(done.Entity), err)
}

type claimRelease struct {
	idempotencyFlags
	Token  string `arg:"" help:"Claim token, as printed by \"claim take\"."`
	Reason string `setting:"-" placeholder:"TEXT" help:"Reason to record in the entity's history."`
}

func (c *claimRelease) Run(ctx context.Context, d *connection) error {
	done, err := d.ReleaseClaim(ctx, c.Token, wire.Release{Reason: c.Reason}, c.options(d)...)
	return d.show(entityFacts(done.Entity), err)
}

type operationsCommand struct {
	List     operationsList     `cmd:"" help:"List unfinished operations, and operations with contradictions."`
	Resolve  operationsResolve  `cmd:"" help:"Resolve an uncertain operation."`
	Show     operationsShow     `cmd:"" help:"Show an operation, even if it has ended."`
	Release  operationsRelease  `cmd:"" help:"Release an operation, unless one of its effects may have happened."`
	Withdraw operationsWithdraw `cmd:"" help:"Withdraw an operation that is due."`
	Ack      operationsAck      `cmd:"" help:"Acknowledge an operation's contradictions."`
}

type operationsList struct {
	pageFlags
	State   string `setting:"-" enum:",held,due,uncertain,contradicted,lost" default:"" placeholder:"STATE" help:"List only operations in this state: held, due, uncertain, contradicted or lost."`
	Handler string `setting:"-" placeholder:"NAME" help:"List only operations of this handler."`
}

func (c *operationsList) Run(ctx context.Context, d *connection) error {
	l, err := d.ListOperationsPage(ctx, client.OperationFilter{State: c.State, Handler: c.Handler}, c.page(), d.raw())
	t := &table{heads: []string{"ID", "SUBJECT", "HANDLER", "STATE", "SINCE", "EFFECTS", "CONTRADICTIONS"}}
	for _, x := range l.Items {
		t.add(x.ID, x.Subject, x.Handler, x.State, at(x.Since), effectsOf(x), contradictionsOf(x.Contradictions))
	}
	return d.showList(t, l.Next, err)
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
	idempotencyFlags
	ID             string   `arg:"" name:"id" help:"Operation id."`
	Contradictions []string `arg:"" name:"contradiction" help:"Contradiction ids."`
}

func (c *operationsAck) Run(ctx context.Context, d *connection) error {
	left, err := d.AcknowledgeContradictions(ctx, c.ID, wire.Acknowledge{Contradictions: c.Contradictions}, c.options(d)...)
	return d.show(facts("contradictions left", strconv.Itoa(len(left.Contradictions))), err)
}

type operationsShow struct {
	targetFlags
	ID string `arg:"" name:"id" help:"Operation id."`
}

func (c *operationsShow) Run(ctx context.Context, d *connection) error {
	o, err := d.GetOperation(ctx, c.ID, d.raw())
	return d.show(resolvedFacts(c.ID, wire.Resolved{Operation: &o}), err)
}

type operationsRelease struct {
	idempotencyFlags
	ID     string `arg:"" name:"id" help:"Operation id."`
	Reason string `setting:"-" placeholder:"TEXT" help:"Reason to record in the audit."`
	Epoch  *int64 `setting:"-" placeholder:"N" help:"Release only a lease with this epoch (see \"operations show\")."`
}

func (c *operationsRelease) Run(ctx context.Context, d *connection) error {
	done, err := d.ReleaseOperation(ctx, c.ID, wire.ReleaseOperation{Reason: c.Reason, Epoch: c.Epoch}, c.options(d)...)
	return d.show(resolvedFacts(c.ID, done), err)
}

type operationsWithdraw struct {
	idempotencyFlags
	ID     string `arg:"" name:"id" help:"Operation id."`
	Reason string `setting:"-" placeholder:"TEXT" help:"Reason to record in the audit."`
}

func (c *operationsWithdraw) Run(ctx context.Context, d *connection) error {
	done, err := d.WithdrawOperation(ctx, c.ID, wire.Withdraw{Reason: c.Reason}, c.options(d)...)
	return d.show(resolvedFacts(c.ID, done), err)
}

type operationsResolve struct {
	idempotencyFlags
	ID          string   `arg:"" name:"id" help:"Operation id."`
	Happened    []string `setting:"-" sep:"none" placeholder:"EFFECT[=JSON]" help:"Effect that happened, with its result. To refer to the second call of an effect, add #1: charge#1. Repeat the flag for each effect."`
	NotHappened []string `setting:"-" sep:"none" placeholder:"EFFECT" help:"Effect that did not happen, such as charge or charge#1. Repeat the flag for each effect."`
	Outcome     string   `setting:"-" enum:",success,failure,invalid" default:"" placeholder:"OUTCOME" help:"Outcome that ends the operation: success, failure or invalid. Without an outcome, the operation resumes, or ends if nothing happened."`
}

func (c *operationsResolve) Run(ctx context.Context, to *target) error {
	in := wire.Resolve{Outcome: c.Outcome}
	for flag, all := range map[string][]string{"--happened": c.Happened, "--not-happened": c.NotHappened} {
		for _, text := range all {
			x, err := knownEffect(flag, text)
			if err != nil {
				return err
			}
			x.Happened = new(flag == "--happened")
			in.Effects = append(in.Effects, x)
		}
	}
	d, err := to.open(ctx)
	if err != nil {
		return err
	}
	done, err := d.ResolveOperation(ctx, c.ID, in, c.options(d)...)
	return d.show(resolvedFacts(c.ID, done), err)
}

// resolvedFacts shows an operation after an operator acted on it.
func resolvedFacts(id string, done wire.Resolved) *table {
	if done.Operation == nil {
		return facts("operation", id, "state", "ended")
	}
	x := *done.Operation
	return facts("operation", x.ID, "subject", x.Subject, "state", x.State, "effects", effectsOf(x))
}

// knownEffect reads NAME[#ORDINAL][=RESULT].
func knownEffect(flag, text string) (wire.KnownEffect, error) {
	var x wire.KnownEffect
	name, result, some := strings.Cut(text, "=")
	if some {
		if flag != "--happened" {
			return x, misuse("--not-happened does not accept a result: specify only the effect's name")
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
			return x, misuse("%s must have a number after #, got %q", flag, ordinal)
		}
		x.Ordinal = n
	}
	x.Name = name
	return x, nil
}
