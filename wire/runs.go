package wire

import (
	"encoding/json"

	"github.com/holdfast-go/holdfast/fault"
)

// Definition is a workflow, as it is kept. There is one of a name and version, and it is
// not changed.
type Definition struct {
	ID          string            `json:"id" doc:"name@version"`
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	RetentionMs Millis            `json:"retentionMs,omitempty" doc:"How long its runs are kept beyond their end; without it, as the server says."`
	Steps       []json.RawMessage `json:"steps"`
	CreatedAt   *Time             `json:"createdAt"`
}

// DefinedWorkflow is a definition that was posted, or judged.
type DefinedWorkflow struct {
	Definition
	Warnings []fault.Violation `json:"warnings"`
}

// StartRun asks for a run.
type StartRun struct {
	DefinitionID   string          `json:"definitionId" doc:"name@version"`
	Input          json.RawMessage `json:"input,omitempty" doc:"An object; {} if not set."`
	IdempotencyKey *string         `json:"idempotencyKey,omitempty" doc:"1 to 255 characters: whoever starts a run under it, now or later, is given the same."`
}

// StartedRun is the run, and whether this call made it.
type StartedRun struct {
	Run     Run  `json:"run"`
	Created bool `json:"created"`
}

// Run is a run as it stands.
type Run struct {
	ID              string          `json:"id"`
	WorkspaceID     string          `json:"workspaceId"`
	DefinitionID    string          `json:"definitionId"`
	IdempotencyKey  *string         `json:"idempotencyKey"`
	Status          string          `json:"status" enum:"PENDING,RUNNING,WAITING,PAUSED,COMPLETED,FAILED,CANCELLED"`
	Version         int64           `json:"version" doc:"It grows with every transition."`
	Input           json.RawMessage `json:"input"`
	State           json.RawMessage `json:"state"`
	Output          json.RawMessage `json:"output"`
	CurrentStepName *string         `json:"currentStepName" doc:"Where it stands, or stood when it failed or was cancelled; null of a run that is completed."`
	CancelRequested bool            `json:"cancelRequested"`
	Error           *string         `json:"error"`
	CreatedAt       *Time           `json:"createdAt"`
	StartedAt       *Time           `json:"startedAt"`
	FinishedAt      *Time           `json:"finishedAt"`
}

// RunStep is a visit of a step.
type RunStep struct {
	Name         string          `json:"name"`
	Visit        int64           `json:"visit" doc:"The how many-th of this step, from 1 on."`
	Type         string          `json:"type"`
	Handler      string          `json:"handler,omitempty"`
	Status       string          `json:"status" enum:"PENDING,RUNNING,WAITING,COMPLETED,FAILED,SKIPPED,CANCELLED"`
	Attempts     int64           `json:"attempts"`
	Failures     int64           `json:"failures" doc:"Attempts that their workers lived to report."`
	Deaths       int64           `json:"deaths" doc:"Holders that did not come back."`
	LostHandOuts int64           `json:"lostHandOuts" doc:"Hand-outs in a row to workers of whom nothing was heard."`
	Uncertain    bool            `json:"uncertain" doc:"It waits for a person to say what happened; see operations."`
	Input        json.RawMessage `json:"input"`
	Output       json.RawMessage `json:"output"`
	Error        *string         `json:"error"`
	Epoch        int64           `json:"epoch"`
	Holder       *string         `json:"holder"`
	Until        *Time           `json:"until" doc:"Of the hold."`
	DueAt        *Time           `json:"dueAt" doc:"When it is looked at next, if nobody holds it."`
	StartedAt    *Time           `json:"startedAt"`
	FinishedAt   *Time           `json:"finishedAt"`
}

// Command pauses, resumes, cancels or retries a run.
type Command struct {
	ExpectedVersion *int64 `json:"expectedVersion,omitempty" doc:"It is done only if the run has this version."`
}

// Signal is something that a run is told.
type Signal struct {
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
	ID      *string         `json:"id,omitempty" doc:"The sender's: the same id again is the same signal. Without one it gets one."`
}

// Signalled is a signal that was taken in.
type Signalled struct {
	ID    string `json:"id"`
	Fresh bool   `json:"fresh" doc:"false: it was sent before."`
}

// Approval is what somebody is to decide, or has.
type Approval struct {
	ID         string          `json:"id"`
	RunID      string          `json:"runId"`
	Step       string          `json:"step"`
	Visit      int64           `json:"visit"`
	Prompt     string          `json:"prompt"`
	Requesters []string        `json:"requesters" doc:"On whose behalf it may be decided; none: by whoever may decide anything."`
	Status     string          `json:"status" enum:"pending,approved,rejected,edited,expired"`
	By         *string         `json:"by" doc:"Who decided."`
	Label      *string         `json:"label" doc:"What they want to be called."`
	Content    json.RawMessage `json:"content"`
	CreatedAt  *Time           `json:"createdAt"`
	ExpiresAt  *Time           `json:"expiresAt"`
	DecidedAt  *Time           `json:"decidedAt"`
}

// Decide decides an approval.
type Decide struct {
	Decision string          `json:"decision" enum:"approved,rejected,edited"`
	Content  json.RawMessage `json:"content,omitempty"`
	By       string          `json:"by,omitempty" doc:"A label: who decided is whose key it is."`
}
