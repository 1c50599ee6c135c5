package wire

import (
	"encoding/json"

	"github.com/holdfast-go/holdfast/fault"
)

// Entity is an entity of a lifecycle, with its status and data.
type Entity struct {
	Lifecycle string          `json:"lifecycle"`
	ID        string          `json:"id"`
	Status    string          `json:"status"`
	Version   int64           `json:"version"`
	Data      json.RawMessage `json:"data"`
	CreatedAt *Time           `json:"createdAt"`
	UpdatedAt *Time           `json:"updatedAt"`
	Claim     *Claim          `json:"claim"`
}

// Claim describes the claim on an entity: its holder and its operation. It does not include the
// token.
type Claim struct {
	StepKey   string `json:"stepKey"`
	Requester string `json:"requester"`
	Holder    string `json:"holder"`
	Epoch     int64  `json:"epoch"`
	Until     *Time  `json:"until"`
	Uncertain bool   `json:"uncertain"`
	Operation string `json:"operation"`
	Since     *Time  `json:"since"`
}

// NewEntity is the request to create an entity. Without an ID, the entity gets a generated one; an empty ID is refused.
type NewEntity struct {
	ID     *string         `json:"id,omitempty" doc:"Generated if omitted."`
	Status string          `json:"status,omitempty" doc:"Defaults to the config's initial status."`
	Data   json.RawMessage `json:"data,omitempty" doc:"A JSON object."`
}

// Fire is the request to fire a step of an entity.
type Fire struct {
	Requester       string          `json:"requester" doc:"The requester to act for; the API key must be allowed to act for it."`
	Input           json.RawMessage `json:"input,omitempty"`
	ExpectedVersion *int64          `json:"expectedVersion,omitempty"`
}

// Fired is the result of a fired step: success, pending (still in progress, or waiting to be
// resumed) or uncertain (waiting for manual resolution).
type Fired struct {
	Outcome   string          `json:"outcome" enum:"success,pending,uncertain"`
	Operation string          `json:"operation,omitempty"`
	Entity    Entity          `json:"entity"`
	Output    json.RawMessage `json:"output,omitempty"`
}

// NewClaim is the request to claim a step manually.
type NewClaim struct {
	StepKey         string          `json:"stepKey"`
	Requester       string          `json:"requester"`
	Input           json.RawMessage `json:"input,omitempty"`
	LeaseMs         Millis          `json:"leaseMs,omitempty" doc:"How long the lease lasts; defaults to the lifecycle's stuck_after."`
	ExpectedVersion *int64          `json:"expectedVersion,omitempty"`
}

// Claimed is the response to a claim. The token is returned only once.
type Claimed struct {
	Claim  Token  `json:"claim"`
	Entity Entity `json:"entity"`
}

// Token proves that its bearer holds a claim.
type Token struct {
	Token string `json:"token"`
	Epoch int64  `json:"epoch"`
	Until *Time  `json:"until"`
}

// Renew is the request to extend a lease.
type Renew struct {
	Epoch   int64  `json:"epoch,omitempty"`
	LeaseMs Millis `json:"leaseMs,omitempty"`
}

// Renewed is the response to a renewal.
type Renewed struct {
	Until           *Time `json:"until"`
	CancelRequested bool  `json:"cancelRequested"`
}

// Settle is the request to end a claim.
type Settle struct {
	Outcome string          `json:"outcome" enum:"success,failure,invalid"`
	Data    json.RawMessage `json:"data,omitempty" doc:"A merge patch (RFC 7396) for the entity's data."`
	Events  []SettleEvent   `json:"events,omitempty" doc:"Events to append to user streams in the same transaction."`
	Message string          `json:"message,omitempty"`
}

// SettleEvent is an event that a settle appends to a stream.
type SettleEvent struct {
	Stream string          `json:"stream,omitempty"`
	Name   string          `json:"name"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// Settled is the entity after its claim has ended.
type Settled struct {
	Entity Entity `json:"entity"`
}

// Release is the request to release a claim.
type Release struct {
	Reason string `json:"reason,omitempty"`
}

// EffectCall journals an effect of an operation. Without a result or notDone, it records the
// intent; otherwise it records the outcome.
type EffectCall struct {
	Epoch   int64           `json:"epoch,omitempty"`
	Name    string          `json:"name"`
	Ordinal int             `json:"ordinal,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	NotDone bool            `json:"notDone,omitempty"`
}

// EffectState is the journaled state of an effect.
type EffectState struct {
	Key    string          `json:"key"`
	State  string          `json:"state" enum:"begun,done,notDone"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Lifecycle is the config of a lifecycle that is in force.
type Lifecycle struct {
	Name     string          `json:"name"`
	Revision int64           `json:"revision" doc:"1 for the first config, higher after each change; a change that removes statuses raises it by more than 1."`
	Statuses []string        `json:"statuses"`
	Config   json.RawMessage `json:"config,omitempty" doc:"The config as it was sent, if it is JSON."`
	Source   string          `json:"source,omitempty" doc:"The config as it was sent, if it is YAML."`
}

// LifecycleDetails is a lifecycle, and how the server serves it.
type LifecycleDetails struct {
	Lifecycle
	Origin   string            `json:"origin" enum:"program,published" doc:"Whether a program defines the lifecycle, or it was published through the API."`
	Janitor  LifecycleJanitor  `json:"janitor"`
	Warnings []fault.Violation `json:"warnings" doc:"What the linter warns about."`
}

// LifecycleJanitor is what recovers the claims of a lifecycle after crashes.
type LifecycleJanitor struct {
	Kind         string `json:"kind" enum:"standard,program,none" doc:"program if a janitor of the program recovers at least one claim status; none if there are no claims to recover."`
	EveryMs      Millis `json:"everyMs" doc:"How often claims are swept; 0 means with every round of the server's janitor."`
	StuckAfterMs Millis `json:"stuckAfterMs" doc:"How long a claim lasts that is not renewed."`
}

// PutLifecycle is the response to a request that publishes or validates a lifecycle config.
type PutLifecycle struct {
	Name     string            `json:"name"`
	Revision int64             `json:"revision" doc:"1 for the first config, higher after each change; a change that removes statuses raises it by more than 1."`
	Warnings []fault.Violation `json:"warnings"`
}

// Attempt is a refused write to an entity.
type Attempt struct {
	StepKey   string         `json:"stepKey" doc:"The step that was fired or claimed. For a holder that had lost its lease, what it tried: settle, renew, beginEffect, endEffect or enqueue. For a refused create: create."`
	Requester string         `json:"requester"`
	Code      fault.Code     `json:"code"`
	Detail    map[string]any `json:"detail"`
	At        *Time          `json:"at"`
	RefusedBy
}

// HeldClaim is an element of a claim list.
type HeldClaim struct {
	Lifecycle string `json:"lifecycle"`
	Entity    string `json:"entity"`
	Status    string `json:"status"`
	Phase     string `json:"phase" enum:"held,due,uncertain"`
	Claim
}

// Operation is an operation that has not ended or has contradictions.
type Operation struct {
	ID           string   `json:"id"`
	Kind         string   `json:"kind"`
	Subject      string   `json:"subject"`
	State        string   `json:"state" enum:"held,due,uncertain,ended"`
	Handler      string   `json:"handler"`
	Since        *Time    `json:"since"`
	Epoch        int64    `json:"epoch"`
	Error        string   `json:"error,omitempty"`
	Effects      []Effect `json:"effects"`
	Ended        *Event   `json:"ended,omitempty" doc:"The event that ended the operation, while it is retained. Only in the response for one operation."`
	LostHandOuts int64    `json:"lostHandOuts,omitempty" doc:"Number of consecutive hand-outs to workers that never responded. Set only with state=lost."`
	// Contradictions are effect calls by holders that had lost their lease. They are listed until
	// they are acknowledged.
	Contradictions []Contradiction `json:"contradictions,omitempty"`
}

// Contradiction is an effect call by a holder that had lost its lease, or lost it before it could
// record the outcome. It does not change the operation.
type Contradiction struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Ordinal int             `json:"ordinal"`
	Key     string          `json:"key"`
	Epoch   int64           `json:"epoch" doc:"The epoch of the lease that the holder lost."`
	State   string          `json:"state" enum:"done,unknown"`
	Result  json.RawMessage `json:"result,omitempty"`
	Node    string          `json:"node"`
	At      *Time           `json:"at"`
}

// Acknowledge names contradictions that a person has seen.
type Acknowledge struct {
	Contradictions []string `json:"contradictions" doc:"Ids of the contradictions to acknowledge."`
}

// Acknowledged lists the operation's remaining contradictions.
type Acknowledged struct {
	Contradictions []Contradiction `json:"contradictions"`
}

// Effect is one external side effect inside an operation.
type Effect struct {
	Name    string          `json:"name"`
	Ordinal int             `json:"ordinal"`
	Key     string          `json:"key"`
	State   string          `json:"state" enum:"begun,done,notDone"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// Resolve states the outcome of an uncertain operation's effects.
type Resolve struct {
	Effects []KnownEffect `json:"effects,omitempty"`
	Outcome string        `json:"outcome,omitempty" enum:"success,failure,invalid" doc:"Outcome that ends the operation; omit it to resume the operation."`
}

// ReleaseOperation says why an operation is released.
type ReleaseOperation struct {
	Reason string `json:"reason,omitempty" doc:"Recorded in the audit and, for an operation of an entity, as its error."`
	Epoch  *int64 `json:"epoch,omitempty" minimum:"1" doc:"The epoch of the lease to end. If the lease has another one, nothing is changed, so a repeated request cannot end the lease of the next holder."`
}

// Withdraw gives the reason for withdrawing an operation.
type Withdraw struct {
	Reason string `json:"reason,omitempty"`
}

// KnownEffect states whether an effect happened.
type KnownEffect struct {
	Name     string          `json:"name"`
	Ordinal  int             `json:"ordinal,omitempty"`
	Happened *bool           `json:"happened" nullable:"false" doc:"Whether the effect happened."`
	Result   json.RawMessage `json:"result,omitempty"`
}

// Resolved is the operation after the change; null if it has ended.
type Resolved struct {
	Operation *Operation `json:"operation"`
}
