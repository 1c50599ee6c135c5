// Package webhook signs and verifies messages as Standard Webhooks has it: what
// Holdfast sends to a URL, to webhooks and to handlers over HTTP, is signed so, and a
// program that is called verifies it:
//
//	v, err := webhook.NewVerifier("whsec_…")
//	…
//	if err := v.Verify(r.Header, body); err != nil { … 401 }
//
// The signature covers the message's id, the time and the body. The id is the same
// each time a message is sent again: use it to recognise what was handled already.
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

// The headers of a signed message.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

const (
	prefix = "whsec_"
	// Tolerance is how far the time of a message may be from the receiver's.
	Tolerance = 5 * time.Minute
)

// NewSecret makes a secret.
func NewSecret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // it does not fail
	return prefix + base64.StdEncoding.EncodeToString(raw)
}

func keyOf(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, prefix))
	if err != nil || len(key) < 24 || len(key) > 64 {
		return nil, fault.New(fault.Validation, "a webhook's secret is whsec_ and 24 to 64 bytes in base64")
	}
	return key, nil
}

// CheckSecret refuses a secret that is none.
func CheckSecret(secret string) error {
	_, err := keyOf(secret)
	return err
}

func sign(key []byte, id string, at int64, body []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.", id, at)
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Sign sets the headers of a message. With several secrets it has as many
// signatures, so that receivers can change over from one to the other.
func Sign(h http.Header, id string, at time.Time, body []byte, secrets ...string) error {
	if id == "" || strings.ContainsAny(id, ". \t\r\n") {
		return fault.New(fault.Validation, "the id of a message has no dots and no spaces")
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
		return fault.New(fault.Validation, "a message is signed with at least one secret")
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(HeaderSignature, strings.Join(all, " "))
	return nil
}

// Verifier verifies messages. Safe for concurrent use.
type Verifier struct {
	keys [][]byte
	now  func() time.Time

	mu   sync.Mutex
	seen map[string]time.Time // ids, and until when they must be known
	next time.Time            // when old ones are forgotten
}

// NewVerifier takes the secrets that a message may be signed with.
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
		return nil, fault.New(fault.Validation, "a verifier needs at least one secret")
	}
	return v, nil
}

// Verify refuses a message whose signature is none of the secrets', whose time is too
// far from now: that may be an old one, which somebody has kept and sends again.
func (v *Verifier) Verify(h http.Header, body []byte) error {
	_, _, err := v.verify(h, body)
	return err
}

// VerifyOnce is [Verifier.Verify] and refuses, as [fault.Conflict], a message that this
// verifier has accepted before, within the time in which it could be sent again. A
// sender that got no answer sends its message again, with the same id: whoever handled
// it answers such a repetition with a success, and does nothing.
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
		return fault.New(fault.Conflict, "the message %s was accepted before", id)
	}
	v.seen[id] = at.Add(2 * Tolerance)
	return nil
}

func (v *Verifier) verify(h http.Header, body []byte) (id string, at time.Time, err error) {
	refused := fault.New(fault.Auth, "the message is not signed as it should be")
	id = h.Get(HeaderID)
	seconds, bad := strconv.ParseInt(h.Get(HeaderTimestamp), 10, 64)
	if id == "" || bad != nil || len(h.Values(HeaderID)) != 1 || len(h.Values(HeaderTimestamp)) != 1 {
		return "", at, refused
	}
	at = time.Unix(seconds, 0)
	if d := v.now().Sub(at); d > Tolerance || d < -Tolerance {
		return "", at, fault.New(fault.Auth, "the message was signed too long ago, or by a clock that is wrong")
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
