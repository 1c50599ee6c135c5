package wire

import (
	"encoding/json"

	"github.com/holdfast-go/holdfast/fault"
)

// Entity is a thing with a status.
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

// Claim is who works on an entity. It has no token.
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

// NewEntity makes an entity. Without an id it gets one.
type NewEntity struct {
	ID     string          `json:"id,omitempty"`
	Status string          `json:"status,omitempty" doc:"The config's initial status, if none is named."`
	Data   json.RawMessage `json:"data,omitempty" doc:"A JSON object."`
}

// Fire does a step of an entity.
type Fire struct {
	Requester       string          `json:"requester" doc:"On whose behalf: one that the key may speak for."`
	Input           json.RawMessage `json:"input,omitempty"`
	ExpectedVersion *int64          `json:"expectedVersion,omitempty"`
}

// Fired is what became of a step: success, pending (it goes on, or waits to be
// resumed) or uncertain (it waits for a person).
type Fired struct {
	Outcome   string          `json:"outcome" enum:"success,pending,uncertain"`
	Operation string          `json:"operation,omitempty"`
	Entity    Entity          `json:"entity"`
	Output    json.RawMessage `json:"output,omitempty"`
}

// NewClaim takes the claim of a step by hand.
type NewClaim struct {
	StepKey         string          `json:"stepKey"`
	Requester       string          `json:"requester"`
	Input           json.RawMessage `json:"input,omitempty"`
	LeaseMs         Millis          `json:"leaseMs,omitempty" doc:"How long it is held; the lifecycle's stuck_after, if none is named."`
	ExpectedVersion *int64          `json:"expectedVersion,omitempty"`
}

// Claimed is a claim that was taken. The token is told this once.
type Claimed struct {
	Claim  Token  `json:"claim"`
	Entity Entity `json:"entity"`
}

// Token is what the holder of a claim needs.
type Token struct {
	Token string `json:"token"`
	Epoch int64  `json:"epoch"`
	Until *Time  `json:"until"`
}

// Renew extends a hold.
type Renew struct {
	Epoch   int64  `json:"epoch,omitempty"`
	LeaseMs Millis `json:"leaseMs,omitempty"`
}

// Renewed is a hold that was extended.
type Renewed struct {
	Until           *Time `json:"until"`
	CancelRequested bool  `json:"cancelRequested"`
}

// Settle ends a claim.
type Settle struct {
	Outcome string          `json:"outcome" enum:"success,failure,invalid"`
	Data    json.RawMessage `json:"data,omitempty" doc:"A merge patch (RFC 7396) of the entity's data."`
	Events  []SettleEvent   `json:"events,omitempty" doc:"Appended to their streams in the same transaction."`
	Message string          `json:"message,omitempty"`
}

// SettleEvent is an event that a settle appends to a stream.
type SettleEvent struct {
	Stream string          `json:"stream,omitempty"`
	Name   string          `json:"name"`
	Data   json.RawMessage `json:"data,omitempty"`
}

// Settled is what a claim came to.
type Settled struct {
	Entity Entity `json:"entity"`
}

// Release gives a claim back.
type Release struct {
	Reason string `json:"reason,omitempty"`
}

// EffectCall begins or ends an effect of an operation: with neither result nor notDone,
// it is the intent.
type EffectCall struct {
	Epoch   int64           `json:"epoch,omitempty"`
	Name    string          `json:"name"`
	Ordinal int             `json:"ordinal,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	NotDone bool            `json:"notDone,omitempty"`
}

// EffectState is how an effect stands.
type EffectState struct {
	Key    string          `json:"key"`
	State  string          `json:"state" enum:"begun,done,notDone"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Lifecycle is a config that is in force.
type Lifecycle struct {
	Name     string          `json:"name"`
	Revision int64           `json:"revision"`
	Statuses []string        `json:"statuses"`
	Config   json.RawMessage `json:"config,omitempty" doc:"As it was given, if that was JSON."`
	Source   string          `json:"source,omitempty" doc:"As it was given, if that was YAML."`
}

// PutLifecycle is what became of a config that was put.
type PutLifecycle struct {
	Name     string            `json:"name"`
	Revision int64             `json:"revision"`
	Warnings []fault.Violation `json:"warnings"`
}

// Attempt is a try that was refused.
type Attempt struct {
	StepKey   string         `json:"stepKey"`
	Requester string         `json:"requester"`
	Code      fault.Code     `json:"code"`
	Detail    map[string]any `json:"detail"`
	At        *Time          `json:"at"`
}

// HeldClaim is a claim in a list.
type HeldClaim struct {
	Lifecycle string `json:"lifecycle"`
	Entity    string `json:"entity"`
	Status    string `json:"status"`
	Phase     string `json:"phase" enum:"held,due,uncertain"`
	Claim
}

// Operation is a piece of work that is not at its end, or has contradictions.
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
	LostHandOuts int64    `json:"lostHandOuts,omitempty" doc:"Hand-outs in a row to workers of whom nothing was heard; listed with state=lost."`
	// Contradictions are calls by holders that had lost their lease, until they are acknowledged.
	Contradictions []Contradiction `json:"contradictions,omitempty"`
}

// Contradiction is a call of an effect by a holder that had lost its lease, or lost it before it could
// record the outcome. It changes no operation.
type Contradiction struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Ordinal int             `json:"ordinal"`
	Key     string          `json:"key"`
	Epoch   int64           `json:"epoch" doc:"The epoch of the late holder."`
	State   string          `json:"state" enum:"done,unknown"`
	Result  json.RawMessage `json:"result,omitempty"`
	Node    string          `json:"node"`
	At      *Time           `json:"at"`
}

// Acknowledge names contradictions that a person has seen.
type Acknowledge struct {
	Contradictions []string `json:"contradictions" doc:"The ids of those that were seen."`
}

// Acknowledged has the contradictions of the operation that are left.
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

// Resolve says what a person knows of an operation's effects.
type Resolve struct {
	Effects []KnownEffect `json:"effects,omitempty"`
	Outcome string        `json:"outcome,omitempty" enum:"success,failure,invalid" doc:"How the operation ends; without one it is resumed."`
}

// Withdraw says why an operation is withdrawn.
type Withdraw struct {
	Reason string `json:"reason,omitempty"`
}

// KnownEffect is whether an effect happened.
type KnownEffect struct {
	Name     string          `json:"name"`
	Ordinal  int             `json:"ordinal,omitempty"`
	Happened bool            `json:"happened"`
	Result   json.RawMessage `json:"result,omitempty"`
}

// Resolved is the operation as it is then; null where it is at its end.
type Resolved struct {
	Operation *Operation `json:"operation"`
}
