// Package webhook signs and verifies messages according to Standard Webhooks. Holdfast signs
// all requests to webhooks and HTTP handlers this way. A receiver verifies them:
//
//	v, err := webhook.NewVerifier("whsec_…")
//	…
//	if err := v.Verify(r.Header, body); err != nil { … 401 }
//
// The signature covers the id of the message, the time and the body. The id is the same when a
// message is sent again: use it to detect duplicates.
package webhook

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// Headers of a signed message.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

const (
	prefix = "whsec_"
	// Tolerance is the maximum difference between the message's time and the receiver's time.
	Tolerance = 5 * time.Minute
)

// NewSecret returns a new random secret.
func NewSecret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return prefix + base64.StdEncoding.EncodeToString(raw)
}

func keyOf(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, prefix))
	if err != nil || len(key) < 24 || len(key) > 64 {
		return nil, fault.New(fault.Validation, "a webhook secret must be whsec_ followed by 24 to 64 bytes in base64")
	}
	return key, nil
}

func sign(key []byte, id string, at int64, body []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.", id, at)
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Sign sets the headers of a message. With several secrets the message has one signature for
// each, so that receivers can rotate secrets.
func Sign(h http.Header, id string, at time.Time, body []byte, secrets ...string) error {
	if id == "" || strings.ContainsAny(id, ". \t\r\n") {
		return fault.New(fault.Validation, "a message id must not be empty or contain dots or whitespace, got %q", id)
	}
	all := make([]string, len(secrets))
	for i, s := range secrets {
		key, err := keyOf(s)
		if err != nil {
			return err
		}
		all[i] = sign(key, id, at.Unix(), body)
	}
	if len(all) == 0 {
		return fault.New(fault.Validation, "signing a message requires at least one secret")
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(HeaderSignature, strings.Join(all, " "))
	return nil
}

// Verifier verifies messages. It is safe for concurrent use.
type Verifier struct {
	keys [][]byte
	now  func() time.Time

	mu   sync.Mutex
	seen map[string]time.Time // ids, and when they may be forgotten
	next time.Time            // time of the next cleanup
}

// NewVerifier returns a verifier that accepts messages signed with any of the secrets.
func NewVerifier(secrets ...string) (*Verifier, error) {
	v := &Verifier{now: clock.Now, seen: make(map[string]time.Time)}
	for _, s := range secrets {
		key, err := keyOf(s)
		if err != nil {
			return nil, err
		}
		v.keys = append(v.keys, key)
	}
	if len(v.keys) == 0 {
		return nil, fault.New(fault.Validation, "a verifier requires at least one secret")
	}
	return v, nil
}

// Verify returns an error with the code [fault.Auth] if the message was not signed with one of the secrets, or if its time
// differs from the current time by more than [Tolerance], because it may be a replay.
func (v *Verifier) Verify(h http.Header, body []byte) error {
	_, _, err := v.verify(h, body)
	return err
}

// VerifyOnce is like [Verifier.Verify], but also returns an error with the code [fault.Conflict] for a message that this
// verifier has already accepted. The verifier remembers an id, in memory, for as long as the signed message could be replayed. If
// a sender gets no response, it signs the message again and sends it with the same id; such a retry is accepted after that
// time. Accepted does not mean handled: if handling can fail, use Verify, and store the id with the result.
func (v *Verifier) VerifyOnce(h http.Header, body []byte) error {
	id, at, err := v.verify(h, body)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	if now.After(v.next) {
		for other, until := range v.seen {
			if now.After(until) {
				delete(v.seen, other)
			}
		}
		v.next = now.Add(Tolerance)
	}
	if _, again := v.seen[id]; again {
		return fault.New(fault.Conflict, "message %q was already accepted: respond with success, and do not handle it again", id)
	}
	v.seen[id] = at.Add(2 * Tolerance)
	return nil
}

func (v *Verifier) verify(h http.Header, body []byte) (id string, at time.Time, err error) {
	refused := fault.New(fault.Auth, "the message has no valid signature: check the receiver's secret")
	id = h.Get(HeaderID)
	seconds, bad := strconv.ParseInt(h.Get(HeaderTimestamp), 10, 64)
	if id == "" || bad != nil || len(h.Values(HeaderID)) != 1 || len(h.Values(HeaderTimestamp)) != 1 {
		return "", at, refused
	}
	at = time.Unix(seconds, 0)
	if d := v.now().Sub(at); d > Tolerance || d < -Tolerance {
		return "", at, fault.New(fault.Auth, "the message's timestamp differs from the current time by more than %s: the message is a replay, or a clock is wrong", Tolerance)
	}
	for _, one := range strings.Fields(h.Get(HeaderSignature)) {
		for _, key := range v.keys {
			if hmac.Equal([]byte(one), []byte(sign(key, id, seconds, body))) {
				return id, at, nil
			}
		}
	}
	return "", at, refused
}
