package idem

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/idempotency"
)

// fingerprint identifies a request by its method, its path and query as the client sent them, and its body. It reads
// the body and restores it for the handler.
func fingerprint(w http.ResponseWriter, r *http.Request, limit int64) (string, error) {
	body, err := read(w, r, limit)
	if err != nil {
		return "", err
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	isJSON := err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
	return idempotency.Incoming{Method: r.Method, Target: target(r), Body: body, JSON: isJSON}.Fingerprint(), nil
}

func read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, fault.New(fault.PayloadTooLarge, "the request body exceeds %d bytes: send a smaller body", limit)
	}
	if err != nil {
		return nil, fault.New(fault.Validation, "the request body could not be read: send the request again").Wrap(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// target returns the path and query of the request as the client sent it: a handler in front of this one may have
// stripped a prefix.
func target(r *http.Request) string {
	u := r.URL
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil {
		u = asked
	}
	return u.EscapedPath() + "?" + u.RawQuery
}
