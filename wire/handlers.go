package wire

import "encoding/json"

// PutHandler declares a handler: a URL that is called, or workers that ask for tasks.
type PutHandler struct {
	Kind      string `json:"kind" enum:"http,worker"`
	URL       string `json:"url,omitempty"`
	Safety    string `json:"safety,omitempty" enum:"idempotent,transactional,journaled,opaque" doc:"What is known of it when no answer is heard; absent: undeclared."`
	OnUnknown string `json:"onUnknown,omitempty" enum:"hold,retry,probe"`
	TimeoutMs Millis `json:"timeoutMs,omitempty"`
	Secret    string `json:"secret,omitempty" doc:"whsec_…, which calls are signed with; made, if none is given to a new handler."`
}

// Handler is a handler as it is declared.
type Handler struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	URL       string `json:"url"`
	Safety    string `json:"safety"`
	OnUnknown string `json:"onUnknown"`
	TimeoutMs Millis `json:"timeoutMs"`
	CreatedAt *Time  `json:"createdAt"`
	UpdatedAt *Time  `json:"updatedAt"`
	Secret    string `json:"secret,omitempty" doc:"Told when it was made here, this once."`
}

// HandlerCall is what a handler over HTTP is sent.
type HandlerCall struct {
	Kind           string          `json:"kind" enum:"action,validation,afterEffect,runStep,reaction,batchItem,probe"`
	Handler        string          `json:"handler"`
	Attempt        int             `json:"attempt"`
	IdempotencyKey string          `json:"idempotencyKey" doc:"The operation's id: the same for every attempt."`
	StepKey        string          `json:"stepKey,omitempty"`
	Requester      string          `json:"requester,omitempty"`
	Input          json.RawMessage `json:"input" doc:"Of the step; of a reaction, the event's data."`
	Entity         *Entity         `json:"entity,omitempty"`
	Reaction       string          `json:"reaction,omitempty"`
	Event          *Event          `json:"event,omitempty"`
	Batch          string          `json:"batch,omitempty"`
	Item           string          `json:"item,omitempty" doc:"Its key in the batch."`
	ArtifactPrefix string          `json:"artifactPrefix,omitempty"`
	Run            string          `json:"run,omitempty"`
	Step           string          `json:"step,omitempty" doc:"Of the run."`
	Visit          int64           `json:"visit,omitempty" doc:"The how many-th of this step, from 1 on."`
	State          json.RawMessage `json:"state,omitempty" doc:"The run's."`
	RunInput       json.RawMessage `json:"runInput,omitempty" doc:"The run's own input."`
	Task           string          `json:"task,omitempty" doc:"For a journaled step of a run: effects are journaled at tasks/{task}/effects, under the epoch."`
	Epoch          int64           `json:"epoch,omitempty"`
	Token          string          `json:"token,omitempty" doc:"For a journaled action: effects are journaled at claims/{token}/effects."`
}

// HandlerAnswer is what it answers, with 200: or nothing, with 204. A refusal is 422
// with a message.
type HandlerAnswer struct {
	State   json.RawMessage `json:"state,omitempty" doc:"A merge patch (RFC 7396) of the entity's data, for an action; of the run's state, for a step of a run."`
	Output  json.RawMessage `json:"output,omitempty" doc:"For an action: told to who fired the step. Of a step or an item it is the output."`
	Message string          `json:"message,omitempty"`
	// Happened answers a probe.
	Happened *bool `json:"happened,omitempty" doc:"For a probe: whether an earlier call has acted."`
}
