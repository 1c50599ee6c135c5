package wire

import "encoding/json"

// PutHandler declares a handler: a URL that Holdfast calls, or workers that poll for tasks.
type PutHandler struct {
	Kind      string `json:"kind" enum:"http,worker"`
	URL       string `json:"url,omitempty"`
	Safety    string `json:"safety,omitempty" enum:"idempotent,transactional,journaled,opaque" doc:"Declared safety, which determines whether the handler may run again. Omit it to declare no safety."`
	OnUnknown string `json:"onUnknown,omitempty" enum:"hold,retry,probe"`
	TimeoutMs Millis `json:"timeoutMs,omitempty"`
	Secret    string `json:"secret,omitempty" doc:"Signing secret (whsec_…), or secret:NAME for a named secret. If empty, a secret is generated for a new http handler."`
	// Headers are sent with each call of an http handler.
	Headers map[string]string `json:"headers,omitempty" doc:"Headers of each call. A value may contain ${secret:NAME}, which is replaced when the call is made."`
}

// Handler is a declared handler.
type Handler struct {
	Name       string            `json:"name"`
	Kind       string            `json:"kind"`
	URL        string            `json:"url"`
	Safety     string            `json:"safety"`
	OnUnknown  string            `json:"onUnknown"`
	TimeoutMs  Millis            `json:"timeoutMs"`
	Headers    map[string]string `json:"headers,omitempty" doc:"With the references, not the values of secrets."`
	SignedWith string            `json:"signedWith,omitempty" doc:"The named secret that signs calls, as secret:NAME."`
	CreatedAt  *Time             `json:"createdAt"`
	UpdatedAt  *Time             `json:"updatedAt"`
	Secret     string            `json:"secret,omitempty" doc:"Signing secret, returned only by the call that generated it."`
}

// HandlerCall is the request body sent to an http handler.
type HandlerCall struct {
	Kind           string          `json:"kind" enum:"action,validation,afterEffect,runStep,reaction,batchItem,undoItem,probe"`
	Handler        string          `json:"handler"`
	Attempt        int             `json:"attempt"`
	IdempotencyKey string          `json:"idempotencyKey" doc:"The operation id, which is the same for every attempt."`
	StepKey        string          `json:"stepKey,omitempty"`
	Requester      string          `json:"requester,omitempty"`
	Input          json.RawMessage `json:"input" doc:"Input of the step; for a reaction, the event data."`
	Entity         *Entity         `json:"entity,omitempty"`
	Reaction       string          `json:"reaction,omitempty"`
	Event          *Event          `json:"event,omitempty"`
	Batch          string          `json:"batch,omitempty"`
	Item           string          `json:"item,omitempty" doc:"Key of the item in the batch."`
	ArtifactPrefix string          `json:"artifactPrefix,omitempty"`
	ItemStatus     string          `json:"itemStatus,omitempty" doc:"For an undo: failed or cancelled."`
	Output         json.RawMessage `json:"output,omitempty" doc:"For an undo: the output of the item, if it has one."`
	Run            string          `json:"run,omitempty"`
	Step           string          `json:"step,omitempty" doc:"Step of the run."`
	Visit          int64           `json:"visit,omitempty" doc:"Visit number of this step, starting at 1."`
	State          json.RawMessage `json:"state,omitempty" doc:"State of the run."`
	RunInput       json.RawMessage `json:"runInput,omitempty" doc:"Input of the run."`
	Task           string          `json:"task,omitempty" doc:"Set for a journaled step of a run: journal its effects at tasks/{task}/effects, and send epoch with each effect."`
	Epoch          int64           `json:"epoch,omitempty" doc:"Epoch of the lease; required when you journal a step's effects."`
	Token          string          `json:"token,omitempty" doc:"Set for a journaled action: journal effects at claims/{token}/effects."`
}

// HandlerAnswer is the body of a 200 response from an http handler. A 204 response has no body. A
// handler refuses a call with 422 and a message.
type HandlerAnswer struct {
	State   json.RawMessage `json:"state,omitempty" doc:"A merge patch (RFC 7396): for an action, it applies to the entity's data; for a step of a run, to the run's state."`
	Output  json.RawMessage `json:"output,omitempty" doc:"For an action, the output to return to the caller that fired the step. For a step or an item, its output."`
	Message string          `json:"message,omitempty"`
	// Happened is the response to a probe.
	Happened *bool `json:"happened,omitempty" doc:"For a probe: whether an earlier call took effect."`
}
