package wire

import (
	"encoding/json"

	"github.com/holdfast-go/holdfast/fault"
)

// Definition is a stored workflow definition. A definition is identified by name and version, and
// never changes.
type Definition struct {
	ID          string            `json:"id" doc:"name@version"`
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	RetentionMs Millis            `json:"retentionMs,omitempty" doc:"Retention of finished runs; defaults to the server's setting."`
	Steps       []json.RawMessage `json:"steps"`
	CreatedAt   *Time             `json:"createdAt"`
}

// DefinedWorkflow is a definition that was stored or validated.
type DefinedWorkflow struct {
	Definition
	Warnings []fault.Violation `json:"warnings"`
}

// StartRun is the request to start a run.
type StartRun struct {
	DefinitionID   string          `json:"definitionId" doc:"name@version"`
	Input          json.RawMessage `json:"input,omitempty" doc:"A JSON object; default {}."`
	IdempotencyKey *string         `json:"idempotencyKey,omitempty" doc:"1 to 255 characters. Every start with the same key returns the same run."`
}

// StartedRun is the run, and whether this call created it.
type StartedRun struct {
	Run     Run  `json:"run"`
	Created bool `json:"created"`
}

// Run is the current state of a run.
type Run struct {
	ID              string          `json:"id"`
	WorkspaceID     string          `json:"workspaceId"`
	DefinitionID    string          `json:"definitionId"`
	IdempotencyKey  *string         `json:"idempotencyKey"`
	Status          string          `json:"status" enum:"PENDING,RUNNING,WAITING,PAUSED,COMPLETED,FAILED,CANCELLED"`
	Version         int64           `json:"version" doc:"Incremented by every change of the run."`
	Input           json.RawMessage `json:"input"`
	State           json.RawMessage `json:"state"`
	Output          json.RawMessage `json:"output"`
	CurrentStepName *string         `json:"currentStepName" doc:"Current step or, for a failed or cancelled run, the last step; null for a completed run."`
	CancelRequested bool            `json:"cancelRequested"`
	Error           *string         `json:"error"`
	CreatedAt       *Time           `json:"createdAt"`
	StartedAt       *Time           `json:"startedAt"`
	FinishedAt      *Time           `json:"finishedAt"`
	UpdatedAt       *Time           `json:"updatedAt" doc:"The last change of the run."`
}

// RunStep is one visit of a step.
type RunStep struct {
	Name         string          `json:"name"`
	Visit        int64           `json:"visit" doc:"Visit number of this step, starting at 1."`
	Type         string          `json:"type"`
	Handler      string          `json:"handler,omitempty"`
	Status       string          `json:"status" enum:"PENDING,RUNNING,WAITING,COMPLETED,FAILED,SKIPPED,CANCELLED"`
	Attempts     int64           `json:"attempts"`
	Failures     int64           `json:"failures" doc:"Number of attempts that were reported as failed."`
	Deaths       int64           `json:"deaths" doc:"Number of attempts whose worker crashed: the lease expired without a report."`
	LostHandOuts int64           `json:"lostHandOuts" doc:"Number of consecutive hand-outs to workers that never responded."`
	Uncertain    bool            `json:"uncertain" doc:"Whether the step waits for manual resolution (see operations)."`
	Input        json.RawMessage `json:"input"`
	Output       json.RawMessage `json:"output"`
	Error        *string         `json:"error"`
	Epoch        int64           `json:"epoch"`
	Holder       *string         `json:"holder"`
	Until        *Time           `json:"until" doc:"End of the lease."`
	DueAt        *Time           `json:"dueAt" doc:"When the step is next due, if it is not leased."`
	StartedAt    *Time           `json:"startedAt"`
	FinishedAt   *Time           `json:"finishedAt"`
}

// Command is the body of the request to pause, resume, cancel or retry a run. The path says which of them it is.
type Command struct {
	ExpectedVersion *int64 `json:"expectedVersion,omitempty" doc:"The command is applied only if the run is at this version."`
}

// Signal is a signal to a run.
type Signal struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
	ID      *string         `json:"id,omitempty" doc:"Id chosen by the sender. Sending a signal again with the same id has no effect. Generated if omitted."`
}

// Signalled is the response to a signal.
type Signalled struct {
	ID    string `json:"id"`
	Fresh bool   `json:"fresh" doc:"false if this signal was already sent."`
}

// Approval is a pending or decided approval.
type Approval struct {
	ID         string          `json:"id"`
	RunID      string          `json:"runId"`
	Step       string          `json:"step"`
	Visit      int64           `json:"visit"`
	Prompt     string          `json:"prompt"`
	Requesters []string        `json:"requesters" doc:"An API key may decide if it may act for at least one of these requesters. If empty, any API key that is allowed to decide approvals may decide."`
	Status     string          `json:"status" enum:"pending,approved,rejected,edited,expired"`
	By         *string         `json:"by" doc:"The actor that decided."`
	Label      *string         `json:"label" doc:"Name of the person who decided, as given in the request."`
	Content    json.RawMessage `json:"content"`
	CreatedAt  *Time           `json:"createdAt"`
	ExpiresAt  *Time           `json:"expiresAt"`
	DecidedAt  *Time           `json:"decidedAt"`
}

// Decide is the request to decide an approval.
type Decide struct {
	Decision string          `json:"decision" enum:"approved,rejected,edited"`
	Content  json.RawMessage `json:"content,omitempty"`
	By       string          `json:"by,omitempty" doc:"Name of the person who decides, stored as the label. The actor is the API key or, on a server without API keys, this name."`
}
