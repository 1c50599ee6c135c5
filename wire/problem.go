package wire

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

// ProblemType is the content type of an error response.
const ProblemType = "application/problem+json"

// Problem is an error response (RFC 9457) with the code of a [fault.Error] and the fields of that
// code as additional members.
type Problem struct {
	Type       string            `json:"type"`
	Title      string            `json:"title"`
	Status     int               `json:"status"`
	Code       fault.Code        `json:"code"`
	Detail     string            `json:"detail"`
	RequestID  string            `json:"requestId"`
	Pointer    string            `json:"pointer,omitempty" doc:"JSON pointer (RFC 6901) to the member that the error is about."`
	Violations []fault.Violation `json:"violations,omitempty"`
	// Fields are the additional members.
	Fields map[string]any `json:"-"`
}

// ProblemOf returns the problem document for an error. Only the message of a [fault.Error] is meant
// for callers; any other error is reported without details.
func ProblemOf(err error, status int, requestID string) Problem {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.Internal, "internal error: see the server log for this request id")
	}
	p := Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: f.Code, Detail: f.Message, RequestID: requestID,
		Violations: f.Violations, Fields: maps.Clone(f.Fields)}
	for name, value := range p.Fields {
		if at, ok := value.(time.Time); ok {
			p.Fields[name] = Time{at}
		}
	}
	if at, ok := p.Fields["pointer"].(string); ok {
		p.Pointer = at
	}
	if status, ok := p.Fields["status"]; ok { // status of an entity, not of the HTTP response
		delete(p.Fields, "status")
		p.Fields[entityStatus] = status
	}
	return p
}

const entityStatus = "entityStatus"

// plain has no methods, so encoding/json handles it field by field.
type plain Problem

// MarshalJSON writes the additional members next to the standard members, which they never replace.
// requestId is omitted if it is empty: only requests to the API have one.
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

// UnmarshalJSON reads a problem and collects unknown members in Fields.
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

// Fault returns the error that the problem describes, with the same code and fields.
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
