package webhooksender

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/egress"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/sameorigin"
	"github.com/holdfast-go/holdfast/internal/secretref"
	"github.com/holdfast-go/holdfast/internal/webhooks"
	"github.com/holdfast-go/holdfast/webhook"
	"github.com/holdfast-go/holdfast/wire"
)

const (
	callWithin  = 15 * time.Second
	answerLimit = 64 << 10
)

// deliver sends one event. It reads the URL and the secrets for each message, so that the removal
// of a webhook or the rotation of a leaked secret takes effect with the next message.
func (s *Service) deliver(ctx context.Context, g *gate, id string, d *reactions.Delivery) error {
	if webhooks.Reported(d.Event.Stream) { // the history of a webhook's reaction, which no webhook gets
		return nil
	}
	if wait := g.enter(); wait > 0 {
		return &reactions.Snoozed{After: wait}
	}
	var called, answered bool
	var wait time.Duration
	defer func() { g.leave(called, answered, wait) }()
	to, err := webhooks.Find(ctx, s.engine, s.box, id)
	switch fault.CodeOf(err) {
	case "":
	case fault.NotFound: // its reaction is removed too, so nothing can be recorded
		return fmt.Errorf("webhook %q was deleted: %w", id, lease.ErrLost)
	case fault.DatabaseDamaged:
		return fault.NonRetryable(errors.New("the webhook's secret cannot be decrypted: rotate the secret, then unblock the stream"))
	default:
		return err
	}
	r, err := s.message(ctx, to, messageID(id, d), d)
	if err != nil {
		return err
	}
	stopping := ctx
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	a, err := egress.Do(sameorigin.Client(s.Client, slices.Collect(maps.Keys(to.Headers))), r.WithContext(ctx), answerLimit)
	called = fault.CodeOf(err) != fault.Forbidden && context.Cause(stopping) == nil
	if answered = a.Status != 0; answered { // even if reading the body failed
		wait = retryAfter(a, clock.Now())
		return outcomeOf(a.Status)
	}
	return redacted(&to.Redact, unanswered(ctx, err))
}

// message builds the signed message of an event.
func (s *Service) message(ctx context.Context, to webhooks.Target, id string, d *reactions.Delivery) (*http.Request, error) {
	if _, err := s.policy.CheckURL(to.URL); err != nil { // the allowed networks may have changed
		return nil, fault.NonRetryable(err)
	}
	e := d.Event
	body, err := json.Marshal(wire.WebhookMessage{Type: e.Name, Timestamp: shapes.At(e.At), Data: wire.Event{Stream: e.Stream, Version: e.Version, Name: e.Name,
		Data: e.Data, Correlation: e.Correlation, Causation: e.Causation, Actor: e.Actor, At: shapes.At(e.At)}})
	if err != nil {
		return nil, fault.NonRetryable(fmt.Errorf("the event cannot be encoded: %w", err))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fault.NonRetryable(errors.New("the webhook URL is malformed"))
	}
	for name, value := range to.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Holdfast-Webhooks/1")
	if err := webhook.Sign(r.Header, id, clock.Now(), body, to.Signing...); err != nil {
		return nil, fault.NonRetryable(err)
	}
	return r, nil
}

// messageID returns the message id: the same for every attempt of an event to a webhook, and a new
// one after a reset.
func messageID(id string, d *reactions.Delivery) string {
	sum := sha256.New()
	for _, text := range []string{id, d.Event.Stream} {
		_ = binary.Write(sum, binary.BigEndian, int64(len(text))) // cannot fail for a hash
		sum.Write([]byte(text))
	}
	_ = binary.Write(sum, binary.BigEndian, [2]int64{d.Event.Version, d.Lease.Generation})
	return "msg_" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum.Sum(nil)[:20]))
}

// outcomeOf classifies a response. A receiver that refuses now may accept after its next
// deployment, or once the proxy before it is configured. So every status is retried except 410,
// with which a receiver declines further messages.
func outcomeOf(status int) error {
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusGone:
		return fault.NonRetryable(errors.New("the receiver responded with 410 Gone, so the message is not sent again"))
	}
	return fmt.Errorf("the receiver responded with status %d", status)
}

// unanswered returns the error of a call without a response. It never has a code that would refer
// to the database. Its text is visible to readers of the reaction, so it does not contain the URL.
func unanswered(ctx context.Context, err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.Forbidden {
		return fault.NonRetryable(errors.New(f.Message))
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the receiver did not respond within %s", callWithin)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return fmt.Errorf("the call to the receiver failed: %s", u.Err)
	}
	return errors.New("the call to the receiver failed")
}

// redacted returns the error without the values of secrets, which a redirect could have put into it.
func redacted(r *secretref.Redactor, err error) error {
	clean, changed := r.Error(err)
	if changed && fault.IsNonRetryable(err) {
		return fault.NonRetryable(clean)
	}
	return clean
}

// retryAfter returns the Retry-After of a response, in seconds or as a date.
func retryAfter(a egress.Answer, now time.Time) time.Duration {
	if a.Status != http.StatusTooManyRequests && a.Status != http.StatusServiceUnavailable {
		return 0
	}
	text := a.Header.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
