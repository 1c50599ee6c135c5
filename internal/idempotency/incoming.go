package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// CheckKey refuses a key that is not 1 to 255 printable ASCII characters, or that begins or ends
// with a space.
func CheckKey(key string) error {
	good := key != "" && len(key) <= MaxKey && key[0] != ' ' && key[len(key)-1] != ' '
	for i := 0; i < len(key) && good; i++ {
		good = key[i] >= ' ' && key[i] <= '~'
	}
	if good {
		return nil
	}
	return fault.New(fault.Validation, "the idempotency key must be 1 to %d printable ASCII characters without a space at either end, got %.80q", MaxKey, key).
		With("field", "key")
}

// KeyOf returns the key in the values of the header, or "".
func KeyOf(values []string) (string, error) {
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], CheckKey(values[0])
	}
	return "", fault.New(fault.Validation, "a request may have at most one idempotency key, got %d", len(values))
}

// Stored returns the key under which a caller's key is stored. A space separates uses that share the
// table: one per API route, and one for package idem. Equal keys in different spaces never
// collide, nor do equal keys of different users in one space.
func Stored(space, user, key string) string {
	return fmt.Sprintf("%s/%x", space, sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(user), user, key)))
}

// Incoming identifies a request.
type Incoming struct {
	// Owner is the API key that alone may get the stored response, by the id of the first key in its rotation chain; ""
	// outside the HTTP API.
	Owner          string
	Method, Target string     // target is the path and the query
	Conditions     [][]string // the values of If-Match and If-None-Match, on routes that support them
	Body           []byte
	JSON           bool // compare the body by value: ignore whitespace, member order and the notation of numbers
}

// ownerDigits is the number of digits at the end of a fingerprint that identify the owner.
const ownerDigits = 16

// Fingerprint identifies the request and its owner. A JSON document that two parsers could
// interpret differently is hashed byte by byte.
func (a Incoming) Fingerprint() string {
	kind, body := "bytes", a.Body
	if a.JSON {
		if doc, ok := strictjson.Canonical(body); ok {
			kind, body = "json", doc
		}
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s\n%q\n%s\n", a.Method, a.Target, a.Conditions, kind)
	sum.Write(body)
	owner := sha256.Sum256([]byte(a.Owner))
	return hex.EncodeToString(append(sum.Sum(nil)[:24], owner[:ownerDigits/2]...))
}

// CheckReplay refuses a request that must not get the stored response, because it is a different
// request or the first one is in flight. A request that is committed but whose response is not yet
// stored counts as in flight until the time to store the response has passed.
func (f *Flight) CheckReplay(stored Request) error {
	at := len(f.Fingerprint) - ownerDigits
	switch {
	case stored.Fingerprint == f.Fingerprint:
	case len(stored.Fingerprint) == len(f.Fingerprint) && stored.Fingerprint[at:] != f.Fingerprint[at:]:
		return fault.New(fault.Conflict, "idempotency key %q was already used with another API key: use a new idempotency key", f.Name)
	default:
		return fault.New(fault.KeyMismatch, "idempotency key %q was already used for a different request: use a new idempotency key", f.Name)
	}
	if stored.State != Done || stored.Answerless() && stored.RetryAfter > 0 {
		return UnderWay(stored.RetryAfter)
	}
	return nil
}

// UnderWay returns the error for a request that is in flight for another caller. Its retryAfter is
// in whole seconds, at least 1.
func UnderWay(left time.Duration) *fault.Error {
	after := max(1, int((left+time.Second-1)/time.Second))
	return fault.New(fault.KeyInFlight, "another request with this idempotency key is in progress: try again later").With("retryAfter", after)
}
