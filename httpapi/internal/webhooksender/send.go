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
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/egress"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/webhooks"
	"github.com/holdfast-go/holdfast/webhook"
	"github.com/holdfast-go/holdfast/wire"
)

const (
	callWithin  = 15 * time.Second
	answerLimit = 64 << 10
)

// deliver sends one event. Where its messages go and what they are signed with is read
// for each: a webhook that was removed, or whose secret was replaced because somebody
// had it, is so from the next message on.
func (s *Service) deliver(ctx context.Context, g *gate, id string, d *reactions.Delivery) error {
	if webhooks.Reported(d.Event.Stream) {
		return nil
	}
	if wait := g.enter(); wait > 0 {
		return &reactions.Snoozed{After: wait}
	}
	var called, answered bool
	var asked time.Duration
	defer func() { g.leave(called, answered, asked) }()
	to, err := webhooks.Find(ctx, s.engine, s.box, id)
	switch fault.CodeOf(err) {
	case "":
	case fault.NotFound: // and so is its reaction: nothing can be recorded
		return fault.New(fault.LeaseLost, "the webhook %q is removed", id).Wrap(err)
	case fault.DatabaseDamaged:
		return fault.NonRetryable(errors.New("its secret cannot be opened: rotate it, and unblock"))
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
	a, err := egress.Do(s.Client, r.WithContext(ctx), answerLimit)
	called = fault.CodeOf(err) != fault.Forbidden && context.Cause(stopping) == nil
	if answered = a.Status != 0; answered { // whatever became of the rest
		asked = retryAfter(a, clock.Now())
		return outcomeOf(a.Status)
	}
	return unanswered(ctx, err)
}

// message makes the signed message of an event.
func (s *Service) message(ctx context.Context, to webhooks.Target, id string, d *reactions.Delivery) (*http.Request, error) {
	if _, err := s.policy.CheckURL(to.URL); err != nil { // what is allowed may be other than it was
		return nil, fault.NonRetryable(err)
	}
	e := d.Event
	body, err := json.Marshal(wire.WebhookMessage{Type: e.Name, Timestamp: wire.At(e.At), Data: wire.Event{Stream: e.Stream, Version: e.Version, Name: e.Name,
		Data: e.Data, Correlation: e.Correlation, Causation: e.Causation, Actor: e.Actor, At: wire.At(e.At)}})
	if err != nil {
		return nil, fault.NonRetryable(fmt.Errorf("the event cannot be told: %w", err))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fault.NonRetryable(errors.New("the URL cannot be called"))
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Holdfast-Webhooks/1")
	if err := webhook.Sign(r.Header, id, clock.Now(), body, to.Secrets...); err != nil {
		return nil, fault.NonRetryable(err)
	}
	return r, nil
}

// messageID is the same each time an event is sent to a webhook, and another after a
// reset.
func messageID(id string, d *reactions.Delivery) string {
	sum := sha256.New()
	for _, text := range []string{id, d.Event.Stream} {
		_ = binary.Write(sum, binary.BigEndian, int64(len(text))) // to a hash, it does not fail
		sum.Write([]byte(text))
	}
	_ = binary.Write(sum, binary.BigEndian, [2]int64{d.Event.Version, d.Lease.Generation})
	return "msg_" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum.Sum(nil)[:20]))
}

// outcomeOf is what an answer means. A receiver that says no may say yes when it is
// deployed anew, or when whoever stands before it is set up: so everything is tried
// again but for 410, by which a receiver says that it wants no more.
func outcomeOf(status int) error {
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusGone:
		return fault.NonRetryable(errors.New("the receiver answered 410: it is gone for good"))
	}
	return fmt.Errorf("the receiver answered %d", status)
}

// unanswered is the error of a call that had no answer. None of them has a code that
// would say something of the database. What it tells is shown to whoever may look at
// the reaction: it does not have the URL.
func unanswered(ctx context.Context, err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Code == fault.Forbidden {
		return fault.NonRetryable(errors.New(f.Message))
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the receiver did not answer within %s", callWithin)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return fmt.Errorf("the call failed: %s", u.Err)
	}
	return errors.New("the call failed")
}

// retryAfter is how long a receiver asks to be left alone, in seconds or as a date.
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
