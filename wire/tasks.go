package wire

import "encoding/json"

// ClaimTasks asks for what there is to do.
type ClaimTasks struct {
	Worker   string   `json:"worker" doc:"Who asks."`
	Handlers []string `json:"handlers"`
	Limit    int      `json:"limit,omitempty" doc:"10, if it is not named."`
	WaitMs   *Millis  `json:"waitMs,omitempty" doc:"How long to wait for something to come; 20000, if it is not named."`
	LeaseMs  Millis   `json:"leaseMs,omitempty" doc:"How long a task is held without a renewal; 30000, if it is not named."`
}

// Tasks are what was taken.
type Tasks struct {
	Tasks []Task `json:"tasks"`
}

// Task is what a worker has to do. Every later call names its epoch.
type Task struct {
	ID             string          `json:"id"`
	Epoch          int64           `json:"epoch"`
	Handler        string          `json:"handler"`
	Kind           string          `json:"kind" enum:"action,validation,afterEffect,runStep,reaction,batchItem,probe"`
	Input          json.RawMessage `json:"input"`
	Attempt        int             `json:"attempt"`
	Until          *Time           `json:"until"`
	IdempotencyKey string          `json:"idempotencyKey" doc:"The operation's id: the same for every attempt, never reused."`
	Context        TaskContext     `json:"context"`
}

// TaskContext is what a task is about.
type TaskContext struct {
	StepKey   string  `json:"stepKey,omitempty"`
	Requester string  `json:"requester,omitempty"`
	Entity    *Entity `json:"entity,omitempty"`
	Reaction  string  `json:"reaction,omitempty"`
	Event     *Event  `json:"event,omitempty"`

	Batch          string `json:"batch,omitempty"`
	Item           string `json:"item,omitempty" doc:"Its key in the batch."`
	ArtifactPrefix string `json:"artifactPrefix,omitempty" doc:"Where an item may put artifacts: they are deleted if it is given up or cancelled."`

	Run   string          `json:"run,omitempty"`
	Step  string          `json:"step,omitempty" doc:"Of the run."`
	Visit int64           `json:"visit,omitempty" doc:"The how many-th of this step, from 1 on."`
	State json.RawMessage `json:"state,omitempty" doc:"The run's."`
	Input json.RawMessage `json:"input,omitempty" doc:"The run's own: the step's is the task's."`
}

// CompleteTask ends a task that is done.
type CompleteTask struct {
	Epoch  int64           `json:"epoch"`
	Output json.RawMessage `json:"output,omitempty"`
	State  json.RawMessage `json:"state,omitempty" doc:"A merge patch (RFC 7396) of the entity's data, or of the run's state."`
}

// FailTask ends a task that is not done.
type FailTask struct {
	Epoch     int64  `json:"epoch"`
	Message   string `json:"message"`
	Retryable *bool  `json:"retryable,omitempty" doc:"false: another attempt would not help."`
	Invalid   bool   `json:"invalid,omitempty" doc:"The step is refused."`
}

// EndedTask is what has become of it: the entity as it is then; for an event, the version
// that was acknowledged or has failed; the state of an item; or the status of a step.
type EndedTask struct {
	Status    string `json:"status" doc:"Of the entity; for an event acked, failed, skipped or blocked; for an item its state; for a step of a run its status, or UNCERTAIN where a person has to say what happened."`
	Version   int64  `json:"version"`
	NotBefore *Time  `json:"notBefore,omitempty" doc:"When an event that failed is tried again."`
}
