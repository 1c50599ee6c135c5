package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// CheckKey refuses a key that is not 1 to 255 printable ASCII characters, with
// spaces only inside.
func CheckKey(key string) error {
	good := key != "" && len(key) <= MaxKey && key[0] != ' ' && key[len(key)-1] != ' '
	for i := 0; i < len(key) && good; i++ {
		good = key[i] >= ' ' && key[i] <= '~'
	}
	if good {
		return nil
	}
	return fault.New(fault.Validation, "an idempotency key is 1 to %d printable ASCII characters, without a space at either end", MaxKey).
		With("field", "key")
}

// KeyOf returns the key of a request whose header has these values, or "".
func KeyOf(values []string) (string, error) {
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], CheckKey(values[0])
	}
	return "", fault.New(fault.Validation, "a request has one idempotency key, not %d", len(values))
}

// Stored is the key under which a caller's key is kept. Keys of two spaces never meet, nor do those of two
// users in one space.
func Stored(space, user, key string) string {
	return fmt.Sprintf("%s/%x", space, sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(user), user, key)))
}

// Incoming is what a request asks for.
type Incoming struct {
	Owner          string // an answer is for those who are the same
	Method, Target string // the target is the path and the query
	Conditions     [][]string
	Body           []byte
	JSON           bool // in the body, space and the order of members mean nothing
}

// ownerDigits are those at the end of a fingerprint that tell whose the request is.
const ownerDigits = 16

// Fingerprint tells the request from another, and from the same of another owner. A JSON document that two readers
// could understand differently is taken as it is written.
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

// Replay refuses a request that is not answered with what is stored under its key: it is another one, or the first is
// under way.
func (f *Flight) Replay(q Request) error {
	at := len(f.Fingerprint) - ownerDigits
	switch {
	case q.Fingerprint == f.Fingerprint:
	case len(q.Fingerprint) == len(f.Fingerprint) && q.Fingerprint[at:] != f.Fingerprint[at:]:
		return fault.New(fault.Conflict, "the key %q belongs to a request of another API key: use a new one", f.Name)
	default:
		return fault.New(fault.KeyMismatch, "the key %q belongs to another request: use a new one", f.Name)
	}
	if q.State != Done || q.Answerless() && q.RetryAfter > 0 {
		return UnderWay(q.RetryAfter)
	}
	return nil
}

// UnderWay refuses a request that another holds for so long. The whole seconds that it tells are one at least.
func UnderWay(left time.Duration) *fault.Error {
	after := max(1, int((left+time.Second-1)/time.Second))
	return fault.New(fault.KeyInFlight, "the request with this key is being worked on: send it again a little later").With("retryAfter", after)
}
