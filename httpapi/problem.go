package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

// refuse answers with the problem that an error is, under its code's status.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := fault.CodeOf(err).Status()
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.Validation && len(f.Violations) > 0 && f.Violations[0].Rule != "syntax" {
		status = http.StatusUnprocessableEntity // it was read, and is refused by a rule
	}
	a.refuseAs(w, r, status, err)
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
	h := w.Header()
	if f, ok := errors.AsType[*fault.Error](err); ok {
		if after, ok := f.Fields["retryAfter"].(int); ok {
			h.Set("Retry-After", strconv.Itoa(after))
		}
		if allow, ok := f.Fields["allow"].(string); ok {
			h.Set("Allow", allow)
		}
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="holdfast"`)
	}
	writeJSON(w, r, status, wire.ProblemType, wire.ProblemOf(err, status, requestID(r.Context())))
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
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)                // it is told what it is, and not to be sniffed at
	if err := out.Encode(doc); err != nil { // a document of ours that JSON cannot say
		panic(err)
	}
	body := text.Bytes()
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	begin(w, status, kind)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client went away: nobody is left to be told
	}
}

// begin writes the headers of an answer.
func begin(w http.ResponseWriter, status int, kind string) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
}
