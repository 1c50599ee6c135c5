package wire

import "encoding/json"

// ClaimTasks is the request to claim tasks.
type ClaimTasks struct {
	Worker   string   `json:"worker" doc:"Name of the worker."`
	Handlers []string `json:"handlers"`
	Limit    int      `json:"limit,omitempty" doc:"Default 10."`
	WaitMs   *Millis  `json:"waitMs,omitempty" doc:"How long to wait for a task; default 20000."`
	LeaseMs  Millis   `json:"leaseMs,omitempty" doc:"How long a lease lasts without renewal; default 30000."`
}

// Tasks are the tasks that were claimed.
type Tasks struct {
	Tasks []Task `json:"tasks"`
}

// Task is a unit of work for a worker. Every later call for the task must state its epoch.
type Task struct {
	ID             string          `json:"id"`
	Epoch          int64           `json:"epoch"`
	Handler        string          `json:"handler"`
	Kind           string          `json:"kind" enum:"action,validation,afterEffect,runStep,reaction,batchItem,undoItem,probe"`
	Input          json.RawMessage `json:"input"`
	Attempt        int             `json:"attempt"`
	Until          *Time           `json:"until"`
	IdempotencyKey string          `json:"idempotencyKey" doc:"The operation id, which is the same for every attempt and never reused."`
	Context        TaskContext     `json:"context"`
}

// TaskContext describes the entity, event, item or step that a task belongs to.
type TaskContext struct {
	StepKey   string  `json:"stepKey,omitempty"`
	Requester string  `json:"requester,omitempty"`
	Entity    *Entity `json:"entity,omitempty"`
	Reaction  string  `json:"reaction,omitempty"`
	Event     *Event  `json:"event,omitempty"`

	Batch          string          `json:"batch,omitempty"`
	Item           string          `json:"item,omitempty" doc:"Key of the item in the batch."`
	ArtifactPrefix string          `json:"artifactPrefix,omitempty" doc:"Prefix for the item's artifacts, which are deleted if the item fails or is cancelled."`
	ItemStatus     string          `json:"itemStatus,omitempty" doc:"For an undo: failed or cancelled."`
	Output         json.RawMessage `json:"output,omitempty" doc:"For an undo: the output of the item, if it has one."`

	Run   string          `json:"run,omitempty"`
	Step  string          `json:"step,omitempty" doc:"Step of the run."`
	Visit int64           `json:"visit,omitempty" doc:"Visit number of this step, starting at 1."`
	State json.RawMessage `json:"state,omitempty" doc:"State of the run."`
	Input json.RawMessage `json:"input,omitempty" doc:"Input of the run; the step's input is in the task."`
}

// CompleteTask reports that a task succeeded.
type CompleteTask struct {
	Epoch  int64           `json:"epoch"`
	Output json.RawMessage `json:"output,omitempty"`
	State  json.RawMessage `json:"state,omitempty" doc:"A merge patch (RFC 7396) for the entity data or the run state."`
}

// FailTask reports that a task failed.
type FailTask struct {
	Epoch     int64  `json:"epoch"`
	Message   string `json:"message"`
	Retryable *bool  `json:"retryable,omitempty" doc:"false if a retry cannot succeed."`
	Invalid   bool   `json:"invalid,omitempty" doc:"true if the handler refuses the step as invalid."`
}

// SnoozeTask gives a task back until a later time. It counts neither as an attempt nor as a failure.
type SnoozeTask struct {
	Epoch   int64  `json:"epoch"`
	DelayMs Millis `json:"delayMs" doc:"Delay until the task is due again, in milliseconds: 1 to 2592000000 (30 days)."`
}

// EndedTask is the result of a task: the entity's status and version, the version of the event
// that was acknowledged or failed, the state of the item, or the status of the step.
type EndedTask struct {
	Status    string `json:"status" doc:"For an action, the status of the entity. For an event, acked, failed, snoozed, skipped or blocked. For a batch item, its state. For a step of a run, its status, or UNCERTAIN if the step needs manual resolution."`
	Version   int64  `json:"version"`
	NotBefore *Time  `json:"notBefore,omitempty" doc:"When a failed or snoozed event is delivered again."`
}
