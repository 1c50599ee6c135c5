package keys_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/store"
)

// TestEveryRefusalIsTheSame verifies that a caller cannot infer from a refusal what was wrong.
func TestEveryRefusalIsTheSame(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		k, text := create(t, hf, plain)
		other, otherText := create(t, hf, plain)
		revoked, revokedText := create(t, hf, plain)
		if _, err := keys.Revoke(t.Context(), engine.Of(hf), revoked.ID, "bob"); err != nil {
			t.Fatal(err)
		}
		short := plain
		short.Lifetime = time.Minute
		expired, expiredText := create(t, hf, short)
		holdfasttest.Advance(t, hf, 2*time.Minute)
		secret := text[len("hf_")+len(k.ID)+1:]
		ring, _ := newRing(hf)
		for range 2 { // from the database, then from the cache
			for what, text := range map[string]string{
				"missing":                   "",
				"not a key":                 "Bearer x",
				"without its prefix":        text[len("hf_"):],
				"with more":                 text + "0",
				"with less":                 text[:len(text)-1],
				"in capitals":               strings.ToUpper(text),
				"with a space":              " " + text,
				"with NUL in its id":        "hf_" + k.ID[:25] + "\x00_" + secret,
				"not UTF-8":                 text[:len(text)-1] + "\xff",
				"unknown":                   keys.NewText(),
				"a wrong secret":            "hf_" + k.ID + "_" + strings.Repeat("0", len(secret)),
				"another key's secret":      "hf_" + k.ID + "_" + otherText[len(otherText)-len(secret):],
				"a secret under another id": "hf_" + other.ID + "_" + secret,
				"expired":                   expiredText,
				"expired, a wrong secret":   "hf_" + expired.ID + "_" + secret,
				"revoked":                   revokedText,
				"revoked, a wrong secret":   "hf_" + revoked.ID + "_" + secret,
			} {
				refused(t, ring, text, what)
			}
			accepted(t, ring, text)
			accepted(t, ring, otherText)
		}
	})
}

// TestARevocationIsSeenByOtherRings verifies that a ring uses a cached key for its TTL, and not
// longer.
func TestARevocationIsSeenByOtherRings(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		k, text := create(t, hf, plain)
		first, clock1 := newRing(hf)
		second, clock2 := newRing(hf)
		accepted(t, first, text)
		accepted(t, second, text)
		if _, err := keys.Revoke(t.Context(), engine.Of(hf), k.ID, "bob"); err != nil {
			t.Fatal(err)
		}
		clock1.move(keys.Remembered)
		refused(t, first, text, "revoked, past the ring's memory")
		clock2.move(keys.Remembered - 1)
		accepted(t, second, text) // it has not read: this is the purpose of the cache
		clock2.move(1)
		refused(t, second, text, "revoked, past the other ring's memory")
	})
}

// TestAClockThatIsPutBackProlongsNothing verifies that an entry that was read in the future is not
// used.
func TestAClockThatIsPutBackProlongsNothing(t *testing.T) {
	hf := holdfasttest.Open(t)
	k, text := create(t, hf, plain)
	ring, manual := newRing(hf)
	accepted(t, ring, text)
	if _, err := keys.Revoke(t.Context(), engine.Of(hf), k.ID, "bob"); err != nil {
		t.Fatal(err)
	}
	manual.move(-time.Hour)
	refused(t, ring, text, "revoked")
}

// TestExpiryIsOfTheDatabasesTime verifies that a key expires by the database's time, whatever the
// node's clock does, and that a ring caches it no longer than it is valid.
func TestExpiryIsOfTheDatabasesTime(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		a := plain
		a.Lifetime = time.Hour
		_, text := create(t, hf, a)
		ring, manual := newRing(hf)
		accepted(t, ring, text)
		manual.move(48 * time.Hour)
		accepted(t, ring, text)
		holdfasttest.Advance(t, hf, time.Hour-900*time.Millisecond)
		manual.move(keys.Remembered)
		if _, err := ring.Verify(t.Context(), text); err != nil { // it had less time left than the machine took
			hasCode(t, err, fault.Auth)
		}
		holdfasttest.Advance(t, hf, time.Second)
		manual.move(900 * time.Millisecond) // it would be cached for longer
		refused(t, ring, text, "expired")
	})
}

// TestUnknownIDsFillNoMemory verifies that guessed ids fill no memory, and evict no known keys.
func TestUnknownIDsFillNoMemory(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		_, text := create(t, hf, plain)
		ring, _ := newRing(hf)
		accepted(t, ring, text)
		for range 10_000 {
			refused(t, ring, keys.NewText(), "unknown")
			if _, unknown, reads := ring.Sizes(); unknown > keys.MostUnknown || reads > 1 {
				t.Fatalf("cache has %d unknown ids and %d reads in flight", unknown, reads)
			}
		}
		if known, _, reads := ring.Sizes(); known != 1 || reads != 0 {
			t.Errorf("cache has %d API keys and %d reads in flight, want 1 and 0", known, reads)
		}
	})
}

// counted is a doer that counts commands, signals them, and delays them.
type counted struct {
	store.Doer
	reads atomic.Int64
	begun chan struct{}
	gate  chan struct{}
}

func (c *counted) Do(ctx context.Context, cmd store.Command) error {
	if c.reads.Add(1) == 1 {
		close(c.begun)
	}
	<-c.gate
	return c.Doer.Do(ctx, cmd)
}

// TestOfThoseWhoAskAtOnceOneReads verifies that one read serves all concurrent callers, and that a
// caller that leaves does not affect the others.
func TestOfThoseWhoAskAtOnceOneReads(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		k, text := create(t, hf, plain)
		c := &counted{Doer: engine.Of(hf), begun: make(chan struct{}), gate: make(chan struct{})}
		ring, _ := newRing(c)
		leaving, leave := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := ring.Verify(leaving, text); err == nil || fault.CodeOf(err) == fault.Auth {
				t.Errorf("canceled caller got %v", err)
			}
		})
		<-c.begun
		leave()
		group.Wait()
		for range 16 {
			group.Go(func() { same(t, "verified", accepted(t, ring, text), k) })
		}
		close(c.gate)
		group.Wait()
		if n := c.reads.Load(); n != 1 {
			t.Errorf("got %d reads, want 1", n)
		}
	})
}

// TestNobodyWaitsForAnOldAnswer verifies that a caller does not join a read that is as old as an
// entry may be: a revocation may lie in between.
func TestNobodyWaitsForAnOldAnswer(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		_, text := create(t, hf, plain)
		c := &counted{Doer: engine.Of(hf), begun: make(chan struct{}), gate: make(chan struct{})}
		ring, manual := newRing(c)
		var group sync.WaitGroup
		group.Go(func() { accepted(t, ring, text) })
		<-c.begun
		manual.move(keys.Remembered)
		close(c.gate)
		accepted(t, ring, text)
		group.Wait()
		if n := c.reads.Load(); n != 2 {
			t.Errorf("got %d reads, want 2", n)
		}
	})
}

// late is a doer that responds too late.
type late struct{ store.Doer }

func (late) Do(ctx context.Context, _ store.Command) error {
	<-ctx.Done()
	return nil
}

// TestALateAnswerIsNone verifies that a result that may be older than a revocation may take is not
// used.
func TestALateAnswerIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, err := keys.NewRing(late{}).Verify(t.Context(), keys.NewText())
		hasCode(t, err, fault.Unavailable)
		if took := time.Since(begun); !fault.IsRetryable(err) || took >= 5*time.Second {
			t.Errorf("after %s: got error %v", took, err)
		}
	})
}

// TestADatabaseThatDoesNotAnswerIsNoYes verifies that a database failure is reported as such, and
// that cached keys are not used for longer then.
func TestADatabaseThatDoesNotAnswerIsNoYes(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		_, text := create(t, hf, plain)
		ring, manual := newRing(hf)
		accepted(t, ring, text)
		if err := hf.Close(); err != nil {
			t.Fatal(err)
		}
		manual.move(keys.Remembered)
		for what, text := range map[string]string{"a good key": text, "an unknown one": keys.NewText()} {
			k, err := ring.Verify(t.Context(), text)
			if fault.CodeOf(err) != fault.Unavailable || k.ID != "" {
				t.Errorf("%s: got API key %v, error %v", what, k, err)
			}
		}
		refused(t, ring, "", "missing") // there is nothing to read
	})
}

// TestNoSecretIsKeptOrTold verifies that neither the secret nor a part of it is in the tables, in
// results of verbs, in errors or in the log; and its hash only in its own table.
func TestNoSecretIsKeptOrTold(t *testing.T) {
	for name, open := range map[string]func(*testing.T) holdfast.Database{
		"sqlite":   func(t *testing.T) holdfast.Database { return holdfasttest.At(holdfasttest.SQLite(t)) },
		"postgres": func(t *testing.T) holdfast.Database { return holdfasttest.At(holdfasttest.PostgreSQL(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			hf, err := holdfast.Open(t.Context(), open(t), holdfast.Config{Log: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			if err != nil {
				t.Fatal(err)
			}
			output, texts := callAll(t, hf)
			table := dump(t, hf, "api_key", "id", "workspace", "name", "role", "requesters", "hash", "rate", "version", "successor", "created_by", "created_at", "expires_at", "revoked_at")
			output += dump(t, hf, "history", "stream", "name", "data", "actor", "correlation", "causation")
			if err := hf.Close(); err != nil {
				t.Fatal(err)
			}
			output += log.String()
			for _, text := range texts {
				id, secret, _ := strings.Cut(text[len("hf_"):], "_")
				if !strings.Contains(table, id) || !strings.Contains(output, id) {
					t.Fatalf("the dumps do not contain API key %s", id)
				}
				if hash := keys.Hash(secret); !strings.Contains(table, hash) || strings.Contains(output, hash[:12]) {
					t.Error("the hash is missing in its table, or is stored elsewhere")
				}
				for i := 0; i+12 <= len(secret); i++ {
					if part := secret[i : i+12]; strings.Contains(table+output, part) {
						t.Errorf("a part of the secret is stored or logged: %s", part)
					}
				}
			}
		})
	}
}

// callAll calls everything that handles keys and returns all results.
func callAll(t *testing.T, hf *holdfast.Engine) (output string, texts []string) {
	t.Helper()
	k, text := create(t, hf, plain)
	next, nextText, err := keys.Rotate(t.Context(), engine.Of(hf), k.ID, time.Hour, "bob")
	if err != nil {
		t.Fatal(err)
	}
	ring, _ := newRing(hf)
	var b strings.Builder
	record := func(v any, err error) {
		data, broken := json.Marshal(v)
		fmt.Fprintf(&b, "%s %+v %#v %v %v\n", data, v, v, err, broken)
	}
	for _, text := range []string{text, nextText, text + "x", nextText[:len(nextText)-1] + "0"} {
		record(ring.Verify(t.Context(), text))
		record(keys.Get(t.Context(), engine.Of(hf), text)) // key and id are mixed up
		record(keys.Revoke(t.Context(), engine.Of(hf), text, "bob"))
		_, _, err := keys.Rotate(t.Context(), engine.Of(hf), text, 0, "bob")
		record(nil, err)
		record(keys.List(t.Context(), engine.Of(hf), text, 1))
	}
	_, _, err = keys.Rotate(t.Context(), engine.Of(hf), k.ID, 0, "bob")
	record(nil, err)
	record(keys.Revoke(t.Context(), engine.Of(hf), next.ID, "bob"))
	record(keys.Get(t.Context(), engine.Of(hf), k.ID))
	record(keys.List(t.Context(), engine.Of(hf), "", 0))
	record(history(t, hf, k.ID), nil)
	record(history(t, hf, next.ID), nil)
	_, err = ring.Verify(t.Context(), nextText)
	record(nil, err)
	return b.String(), []string{text, nextText}
}
