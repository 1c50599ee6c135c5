package webhooksender

import (
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/egress"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/reactions"
)

// stopped returns a gate with a manual clock.
func stopped() (g *gate, move func(time.Duration)) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &gate{now: func() time.Time { return at }}, func(d time.Duration) { at = at.Add(d) }
}

func TestAGateLetsFewThrough(t *testing.T) {
	g, _ := stopped()
	for range maxConcurrent {
		if wait := g.enter(); wait != 0 {
			t.Fatalf("call within the limit waits %s, want 0", wait)
		}
	}
	if wait := g.enter(); wait <= 0 || wait > busyDelay {
		t.Errorf("call over the limit waits %s, want a short delay", wait)
	}
	g.leave(true, true, 0)
	if wait := g.enter(); wait != 0 {
		t.Errorf("call after a release waits %s, want 0", wait)
	}
}

// TestASilentWebhookRests verifies that a webhook that does not respond is paused for increasing
// times, that one message at a time probes it, and that a response ends the pauses.
func TestASilentWebhookRests(t *testing.T) {
	g, move := stopped()
	var rest time.Duration
	for n := range 20 {
		if wait := g.enter(); wait != 0 {
			t.Fatalf("call %d waits %s, want 0", n, wait)
		}
		g.leave(true, false, 0)
		next := g.enter()
		if next < rest || next > maxPause || n > 10 && next != maxPause {
			t.Errorf("pause after %s is %s", rest, next)
		}
		rest = next
		move(rest)
	}
	if wait := g.enter(); wait != 0 {
		t.Fatalf("call after the pause waits %s, want 0", wait)
	}
	if wait := g.enter(); wait <= 0 {
		t.Error("a second call to a silent webhook does not wait")
	}
	g.leave(false, false, 0) // an unreachable database says nothing about the webhook
	if wait := g.enter(); wait != 0 || g.silent == 0 {
		t.Errorf("call waits %s, want 0", wait)
	}
	g.leave(true, true, 0)
	for range maxConcurrent {
		if wait := g.enter(); wait != 0 {
			t.Errorf("call after a response waits %s, want 0", wait)
		}
	}
}

func TestAWebhookAsksToBeLeftAlone(t *testing.T) {
	g, move := stopped()
	g.enter()
	g.leave(true, true, 90*time.Second)
	if wait := g.enter(); wait != 90*time.Second {
		t.Errorf("call waits %s, want 1m30s", wait)
	}
	move(90 * time.Second)
	if wait := g.enter(); wait != 0 {
		t.Errorf("call after Retry-After waits %s, want 0", wait)
	}
	g.leave(true, true, 1000*time.Hour)
	if wait := g.enter(); wait != maxRetryAfter {
		t.Errorf("call waits %s, want %s", wait, maxRetryAfter)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		status int
		text   string
		want   time.Duration
	}{
		{429, "120", 2 * time.Minute},
		{503, now.Add(time.Minute).Format(http.TimeFormat), time.Minute},
		{503, now.Add(-time.Minute).Format(http.TimeFormat), 0},
		{429, "", 0}, {429, "-1", 0}, {429, "soon", 0}, {429, "99999999999999999999", 0},
		{500, "120", 0}, {200, "120", 0},
	} {
		a := egress.Answer{Status: c.status, Header: http.Header{"Retry-After": {c.text}}}
		if got := retryAfter(a, now); got != c.want {
			t.Errorf("%d %q: got %s, want %s", c.status, c.text, got, c.want)
		}
	}
}

func TestWhatAnAnswerMeans(t *testing.T) {
	for status, want := range map[int]string{200: "sent", 204: "sent", 299: "sent", 410: "blocked", 400: "again", 401: "again", 404: "again", 408: "again",
		429: "again", 500: "again", 503: "again", 304: "again"} {
		got := "again"
		if err := outcomeOf(status); err == nil {
			got = "sent"
		} else if fault.IsNonRetryable(err) {
			got = "blocked"
		} else if c := fault.CodeOf(err); c == fault.Unavailable { // a worker would not count it
			got = "uncounted"
		}
		if got != want {
			t.Errorf("status %d: got %s, want %s", status, got, want)
		}
	}
}

// TestTheIDOfAMessage verifies that a message has the same id each time, and a different one for
// any other webhook, stream, version or generation.
func TestTheIDOfAMessage(t *testing.T) {
	of := func(id, stream string, version, generation int64) string {
		return messageID(id, &reactions.Delivery{Event: events.Event{Stream: stream, Version: version}, Lease: &reactions.Lease{Generation: generation}})
	}
	if first := of("a", "s", 1, 0); first != of("a", "s", 1, 0) {
		t.Error("the id changes between attempts")
	}
	seen := map[string]bool{}
	for _, id := range []string{of("a", "s", 1, 0), of("b", "s", 1, 0), of("a", "t", 1, 0), of("a", "s", 2, 0), of("a", "s", 1, 1), of("as", "", 1, 0), of("", "as", 1, 0)} {
		if seen[id] {
			t.Errorf("id %s is used twice", id)
		}
		seen[id] = true
	}
}
