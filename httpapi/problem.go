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

// refuse writes the problem document of an error, with the HTTP status of its code.
func (a *API) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := fault.CodeOf(err).Status()
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.Validation && len(f.Violations) > 0 && f.Violations[0].Rule != "syntax" {
		status = http.StatusUnprocessableEntity // the document was parsed, but violates a rule
	}
	a.refuseAs(w, r, status, err)
}

// refuseAs writes the problem document of an error. A server error is logged with its cause.
func (a *API) refuseAs(w http.ResponseWriter, r *http.Request, status int, err error) {
	id := requestID(r.Context())
	if status >= http.StatusInternalServerError {
		attrs := []slog.Attr{slog.String("path", r.URL.Path), slog.String("error", err.Error()), slog.String("request", id)}
		if cause := causeOf(err); cause != nil {
			attrs = append(attrs, slog.String("cause", cause.Error()))
		}
		level := slog.LevelWarn
		if r.Context().Err() != nil { // the client has disconnected: pages do so whenever a person moves on
			level = slog.LevelDebug
		}
		a.log.LogAttrs(r.Context(), level, "request failed", attrs...)
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

// causeOf returns the cause that a fault wraps, or nil.
func causeOf(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Unwrap()
	}
	return nil
}

// writeJSON writes one document. A HEAD request gets only the headers.
func writeJSON(w http.ResponseWriter, r *http.Request, status int, kind string, doc any) {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)                // nosniff is set, so browsers do not interpret it as HTML
	if err := out.Encode(doc); err != nil { // impossible for our own types
		panic(err)
	}
	body := text.Bytes()
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	begin(w, status, kind)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a failed write means that the client has disconnected
	}
}

// begin writes the headers of a response.
func begin(w http.ResponseWriter, status int, kind string) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
}
