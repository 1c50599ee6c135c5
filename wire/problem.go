package wire

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"

	"github.com/holdfast-go/holdfast/fault"
)

// ProblemType is the content type of a refusal.
const ProblemType = "application/problem+json"

// Problem is a refusal, as RFC 9457 has it, with the code of a [fault.Error] and that
// code's own facts beside it.
type Problem struct {
	Type       string            `json:"type"`
	Title      string            `json:"title"`
	Status     int               `json:"status"`
	Code       fault.Code        `json:"code"`
	Detail     string            `json:"detail"`
	RequestID  string            `json:"requestId"`
	Pointer    string            `json:"pointer,omitempty" doc:"Where in the document, as RFC 6901 has it."`
	Violations []fault.Violation `json:"violations,omitempty"`
	// Fields are the facts that stand beside the rest.
	Fields map[string]any `json:"-"`
}

// ProblemOf makes the document that tells an error. Only what a [fault.Error] says
// is written for a caller; of any other error nothing is told.
func ProblemOf(err error, status int, requestID string) Problem {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.Internal, "something went wrong here: the log has it under this request's id")
	}
	p := Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: f.Code, Detail: f.Message, RequestID: requestID,
		Violations: f.Violations, Fields: maps.Clone(f.Fields)}
	if at, ok := p.Fields["pointer"].(string); ok {
		p.Pointer = at
	}
	if status, ok := p.Fields["status"]; ok { // of an entity, and not of HTTP
		delete(p.Fields, "status")
		p.Fields[entityStatus] = status
	}
	return p
}

const entityStatus = "entityStatus"

// plain has no methods, so that it is written field by field.
type plain Problem

// MarshalJSON writes the facts beside the rest, which they never replace. Only the API's requests have ids.
func (p Problem) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(plain(p))
	if err != nil || len(p.Fields) == 0 && p.RequestID != "" {
		return raw, err
	}
	all := make(map[string]any, len(p.Fields)+8)
	maps.Copy(all, p.Fields)
	var own map[string]json.RawMessage
	if err := json.Unmarshal(raw, &own); err != nil {
		return nil, err
	}
	for name, value := range own {
		all[name] = value
	}
	if p.RequestID == "" {
		delete(all, "requestId")
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads a problem, and what it does not know into Fields.
func (p *Problem) UnmarshalJSON(raw []byte) error {
	if err := json.Unmarshal(raw, (*plain)(p)); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &p.Fields); err != nil {
		return err
	}
	for _, own := range []string{"type", "title", "status", "code", "detail", "requestId", "violations"} {
		delete(p.Fields, own)
	}
	return nil
}

// Fault is the error that the problem tells: of the same code, with the same facts.
func (p Problem) Fault() *fault.Error {
	f := fault.New(p.Code, "%s", p.Detail)
	f.Violations = p.Violations
	for name, value := range p.Fields {
		if name == entityStatus {
			name = "status"
		}
		f = f.With(name, value)
	}
	return f.With("requestId", p.RequestID)
}
