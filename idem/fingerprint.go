package idem

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// fingerprint tells requests apart: by method, path and query as the client sent
// them, and body. The body is read, and there again for the handler.
func fingerprint(w http.ResponseWriter, r *http.Request, limit int64) (string, error) {
	body, err := read(w, r, limit)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	kind := "bytes"
	if doc, ok := canonical(r.Header.Get("Content-Type"), body); ok {
		kind, body = "json", doc
	}
	fmt.Fprintf(sum, "%s %s\n%s\n", r.Method, target(r), kind)
	sum.Write(body)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, fault.New(fault.PayloadTooLarge, "the body is over %d bytes", limit)
	}
	if err != nil {
		return nil, fault.New(fault.Validation, "the body could not be read to its end").Wrap(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

// target is the path and query of a request as it came in: what stands before this
// handler may have cut its path.
func target(r *http.Request) string {
	u := r.URL
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil {
		u = asked
	}
	return u.EscapedPath() + "?" + u.RawQuery
}

// canonical writes a JSON document with its members in one order and without space.
// One that two readers could understand differently stays as it is.
func canonical(contentType string, body []byte) ([]byte, bool) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") || strict.Check(body) != nil {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // a number stays as it is written
	var v any
	if dec.Decode(&v) != nil {
		return nil, false
	}
	doc, err := json.Marshal(v)
	return doc, err == nil
}

// stored is the key under which a client's key is kept. It has the scope in it, and
// is none that a client of the HTTP API would choose.
func stored(scope, key string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(scope), scope, key))
	return "idem/" + hex.EncodeToString(sum[:])
}
