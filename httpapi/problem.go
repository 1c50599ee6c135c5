package httpapi

import (
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast/fault"
)

// refuse answers with the problem that an error is, under its code's status.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, err error) {
	a.refuseAs(w, r, fault.CodeOf(err).Status(), err)
}

// refuseAs answers with the problem that an error is. An error that is our side's
// goes to the log with its cause.
func (a *API) refuseAs(w http.ResponseWriter, r *http.Request, status int, err error) {
	id := requestID(r.Context())
	if status >= http.StatusInternalServerError {
		attrs := []slog.Attr{slog.String("path", r.URL.Path), slog.String("error", err.Error()), slog.String("requestId", id)}
		if cause := causeOf(err); cause != nil {
			attrs = append(attrs, slog.String("cause", cause.Error()))
		}
		a.log.LogAttrs(r.Context(), slog.LevelWarn, "request failed", attrs...)
	}
	writeProblem(w, r, status, err)
}

func writeProblem(w http.ResponseWriter, r *http.Request, status int, err error) {
	writeJSON(w, r, status, "application/problem+json", problem(status, err, requestID(r.Context())))
}

// problem is the document that tells an error. Only a [fault.Error]'s message
// is written for a caller; of any other error nothing is told.
func problem(status int, err error, id string) map[string]any {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.Internal, "something went wrong here: the log has it under this request's id")
	}
	p := maps.Clone(f.Fields) // the code's own facts stand beside the rest
	if p == nil {
		p = make(map[string]any)
	}
	if len(f.Violations) > 0 {
		p["violations"] = f.Violations
	}
	p["type"] = "about:blank" // so the title is the status's, by RFC 9457
	p["title"] = http.StatusText(status)
	p["status"] = status
	p["code"] = f.Code
	p["detail"] = f.Message
	p["requestId"] = id
	return p
}

// causeOf returns what a fault wraps, nil if it wraps nothing.
func causeOf(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Unwrap()
	}
	return nil
}

// writeJSON writes one document; to a HEAD, its headers alone.
func writeJSON(w http.ResponseWriter, r *http.Request, status int, kind string, doc any) {
	body, err := json.Marshal(doc)
	if err != nil { // a document of ours that JSON cannot say
		panic(err)
	}
	body = append(body, '\n')
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client went away: nobody is left to be told
	}
}
