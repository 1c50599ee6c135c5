package keys_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/store"
)

func createSession(t *testing.T, d holdfast.Doer, k keys.Key) (keys.Session, string) {
	t.Helper()
	s, text, err := keys.CreateSession(holdfast.InWorkspace(t.Context(), k.Workspace), store.DoerOf(d), k, "ann")
	if err != nil {
		t.Fatal(err)
	}
	return s, text
}

func sessionAccepted(t *testing.T, r *keys.Ring, text string) (keys.Key, keys.Session) {
	t.Helper()
	k, s, err := r.VerifySession(t.Context(), text)
	if err != nil {
		t.Errorf("valid session was refused: %v", err)
	}
	return k, s
}

func sessionRefused(t *testing.T, r *keys.Ring, text, what string) {
	t.Helper()
	k, s, err := r.VerifySession(t.Context(), text)
	if fault.CodeOf(err) != fault.Auth || err.Error() != refusal || k.ID != "" || s.ID != "" {
		t.Errorf("%s: got API key %v, session %v, error %v", what, k, s, err)
	}
}

// TestASessionIsItsKey verifies that a session is its key on every ring, and that a change of one is seen by all after their
// TTL, and not before.
func TestASessionIsItsKey(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := holdfast.InWorkspace(t.Context(), "acme")
		k, _, err := keys.Create(ctx, engine.Of(hf), plain)
		if err != nil {
			t.Fatal(err)
		}
		made, text := createSession(t, hf, k)
		other, otherText := createSession(t, hf, k)
		if made.Key != k.ID || made.ID == other.ID || made.ExpiresAt.Sub(made.CreatedAt) != keys.SessionLifetime {
			t.Errorf("created %+v and %+v", made, other)
		}
		first, clock1 := newRing(hf)
		second, clock2 := newRing(hf)
		for range 2 { // from the database, then from the cache
			for _, r := range []*keys.Ring{first, second} {
				got, s := sessionAccepted(t, r, text)
				same(t, "the key of the session", got, k)
				if s.ID != made.ID || s.Key != made.Key || !s.ExpiresAt.Equal(made.ExpiresAt) || !s.CreatedAt.Equal(made.CreatedAt) {
					t.Errorf("verified %+v, want %+v", s, made)
				}
				sessionAccepted(t, r, otherText)
				sessionRefused(t, r, text[:len(text)-52]+otherText[len(otherText)-52:], "the secret of another session")
				refused(t, r, text, "a session as a key")
			}
		}
		for range 2 {
			if err := keys.DeleteSession(ctx, engine.Of(hf), made, "bob"); err != nil {
				t.Fatal(err)
			}
		}
		sessionAccepted(t, first, text) // this is the purpose of the cache
		first.Forget(made)
		sessionRefused(t, first, text, "ended, and removed from the cache")
		clock2.move(keys.Remembered - 1)
		sessionAccepted(t, second, text)
		clock2.move(1)
		sessionRefused(t, second, text, "ended, past the ring's memory")
		sessionAccepted(t, second, otherText)
		if _, err := keys.Revoke(ctx, engine.Of(hf), k.ID, "bob"); err != nil {
			t.Fatal(err)
		}
		for _, r := range []struct {
			ring  *keys.Ring
			clock *manualClock
		}{{first, clock1}, {second, clock2}} {
			r.clock.move(keys.Remembered - 1)
			sessionAccepted(t, r.ring, otherText)
			r.clock.move(1)
			sessionRefused(t, r.ring, otherText, "of a revoked key, past the ring's memory")
		}
		if _, _, err := keys.CreateSession(ctx, engine.Of(hf), k, "ann"); fault.CodeOf(err) != fault.Auth {
			t.Errorf("a revoked key created a session: %v", err)
		}
		if got, want := audited(t, ctx, hf), "session.create session.create session.delete key.revoke "; !strings.HasSuffix(got, want) {
			t.Errorf("got audit %q, want it to end with %q", got, want)
		}
	})
}

// audited returns the names of the recorded actions, the oldest first.
func audited(t *testing.T, ctx context.Context, hf *holdfast.Engine) (names string) {
	t.Helper()
	all, err := audit.List(ctx, engine.Of(hf), audit.Filter{}, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		names = e.Action + " " + names
	}
	return names
}

// TestASessionExpiresByTheDatabasesTime verifies that a session ends after its lifetime, also if a ring has cached it, and is
// deleted then.
func TestASessionExpiresByTheDatabasesTime(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		k, _ := create(t, hf, plain)
		_, text := createSession(t, hf, k)
		ring, manual := newRing(hf)
		sessionAccepted(t, ring, text)
		holdfasttest.Advance(t, hf, keys.SessionLifetime-time.Minute)
		manual.move(keys.Remembered)
		sessionAccepted(t, ring, text)
		_, later := createSession(t, hf, k)
		holdfasttest.Advance(t, hf, time.Minute)
		manual.move(keys.Remembered)
		sessionRefused(t, ring, text, "expired")
		if n, err := keys.PruneSessions(t.Context(), engine.Of(hf)); n != 1 || err != nil {
			t.Errorf("pruned %d sessions, error %v, want 1", n, err)
		}
		sessionAccepted(t, ring, later)
	})
}

// TestAKeyHasAHundredSessions verifies that one more ends the oldest, also if several are created at once, and that other
// keys are not affected.
func TestAKeyHasAHundredSessions(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		k, _ := create(t, hf, plain)
		neighbor, _ := create(t, hf, plain)
		_, first := createSession(t, hf, k)
		_, others := createSession(t, hf, neighbor)
		holdfasttest.Advance(t, hf, time.Second)
		_, second := createSession(t, hf, k)
		holdfasttest.Advance(t, hf, time.Second)
		for range keys.MaxSessions - 3 {
			createSession(t, hf, k)
		}
		ring, _ := newRing(hf)
		sessionAccepted(t, ring, first)
		var group sync.WaitGroup
		var last [3]string
		for i := range last {
			group.Go(func() {
				var err error
				if _, last[i], err = keys.CreateSession(t.Context(), engine.Of(hf), k, "ann"); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		ring, _ = newRing(hf)
		sessionRefused(t, ring, first, "the oldest of 102")
		sessionRefused(t, ring, second, "the second of 102")
		for _, text := range append(last[:], others) {
			sessionAccepted(t, ring, text)
		}
		rows := dump(t, hf, "session", "'row'", "api_key")
		if n := strings.Count(rows, k.ID); n != keys.MaxSessions {
			t.Errorf("the key has %d sessions, want %d", n, keys.MaxSessions)
		}
	})
}

// TestUnknownSessionsFillNoMemory verifies that guessed sessions fill no memory, and evict no known ones, and that one read
// serves all concurrent callers.
func TestUnknownSessionsFillNoMemory(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		k, _ := create(t, hf, plain)
		_, text := createSession(t, hf, k)
		c := &counted{Doer: engine.Of(hf), begun: make(chan struct{}), gate: make(chan struct{})}
		ring, _ := newRing(c)
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() { sessionAccepted(t, ring, text) })
		}
		close(c.gate)
		group.Wait()
		if n := c.reads.Load(); n > 3 { // the key, the session, and perhaps its shard
			t.Errorf("got %d reads", n)
		}
		for range keys.MostUnknown + 100 {
			guess := keys.NewText()
			sessionRefused(t, ring, "hfs_"+k.ID+"_"+guess[len("hf_"):], "unknown")
		}
		if known, unknown, reads := ring.Sizes(); known != 2 || unknown > keys.MostUnknown || reads != 0 {
			t.Errorf("cache has %d known and %d unknown, and %d reads in flight", known, unknown, reads)
		}
	})
}

// TestTheSecretOfASessionIsStoredAsItsHash verifies that neither the secret nor a part of it is stored.
func TestTheSecretOfASessionIsStoredAsItsHash(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		k, _ := create(t, hf, plain)
		s, text := createSession(t, hf, k)
		secret := text[len(text)-52:]
		table := dump(t, hf, "session", "shard", "workspace", "api_key", "id", "hash", "created_at", "expires_at")
		rest := dump(t, hf, "history", "stream", "name", "data", "actor") + dump(t, hf, "audit", "action", "subject", "actor", "before", "after")
		if !strings.Contains(table, keys.Hash(secret)) || !strings.Contains(table, s.ID) || !strings.Contains(rest, "session/"+s.ID) || strings.Contains(rest, keys.Hash(secret)) {
			t.Errorf("got sessions %s, others %s", table, rest)
		}
		for i := 0; i+12 <= len(secret); i++ {
			if strings.Contains(table+rest, secret[i:i+12]) {
				t.Errorf("a part of the secret is stored: %s", secret[i:i+12])
			}
		}
	})
}

// TestCrashOfASession verifies that a session that is created and ended is so once, each with its entry in the audit,
// wherever a fault strikes: there is no session without its entry.
func TestCrashOfASession(t *testing.T) {
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			all, err := keys.List(ctx, engine.Of(hf), "", 0)
			if err != nil {
				return err
			}
			if len(all) == 0 {
				k, _, err := keys.Create(ctx, engine.Of(hf), plain)
				if err != nil {
					return err
				}
				all = append(all, k)
			}
			s, text, err := keys.CreateSession(ctx, engine.Of(hf), all[0], "ann")
			if err != nil {
				return err
			}
			if k, _, err := keys.NewRing(engine.Of(hf)).VerifySession(ctx, text); err != nil || k.ID != all[0].ID {
				return errors.Join(fmt.Errorf("the session is of key %v", k), err)
			}
			return keys.DeleteSession(ctx, engine.Of(hf), s, "ann")
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			entries, err := audit.List(ctx, engine.Of(hf), audit.Filter{}, "", 1000)
			if err != nil {
				return err
			}
			created, deleted := make(map[string]bool), make(map[string]bool)
			for _, e := range entries {
				switch e.Action {
				case "session.create":
					created[e.Subject] = true
				case "session.delete":
					deleted[e.Subject] = true
				}
			}
			if len(created) == 0 || len(deleted) == 0 {
				return fmt.Errorf("audit has %d sessions created and %d deleted", len(created), len(deleted))
			}
			all, err := keys.List(ctx, engine.Of(hf), "", 0)
			if err != nil || len(all) != 1 {
				return errors.Join(fmt.Errorf("got %d keys", len(all)), err)
			}
			return keys.CheckSessions(ctx, engine.Of(hf), all[0].ID, len(created)-len(deleted))
		},
	})
}

// TestUsesAreRecordedBehind verifies that a valid key's use is recorded, by RecordUses only, and once a minute.
func TestUsesAreRecordedBehind(t *testing.T) {
	holdfasttest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		used, text := create(t, hf, plain)
		bySession, _ := create(t, hf, plain)
		_, cookie := createSession(t, hf, bySession)
		guessed, guessedText := create(t, hf, plain)
		ring, manual := newRing(hf)
		lastUsed := func(k keys.Key) *time.Time {
			t.Helper()
			now, err := keys.Get(t.Context(), engine.Of(hf), k.ID)
			if err != nil {
				t.Fatal(err)
			}
			return now.LastUsedAt
		}
		record := func() {
			t.Helper()
			if err := ring.RecordUses(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		accepted(t, ring, text)
		sessionAccepted(t, ring, cookie)
		refused(t, ring, guessedText[:len(guessedText)-52]+text[len(text)-52:], "a wrong secret")
		if at := lastUsed(used); at != nil {
			t.Errorf("the request itself recorded %s", at)
		}
		manual.move(30 * time.Second)
		record()
		first := lastUsed(used)
		if first == nil || lastUsed(bySession) == nil || lastUsed(guessed) != nil {
			t.Fatalf("got %v, %v and %v, want two of them", first, lastUsed(bySession), lastUsed(guessed))
		}
		if ago := used.CreatedAt.Sub(*first); ago < 15*time.Second { // the test has taken less than 15 s
			t.Errorf("recorded %s before the key was created, want the time of the use, 30 s before the record", ago)
		}
		for range 14 { // 28 s
			manual.move(keys.Remembered)
			holdfasttest.Advance(t, hf, keys.Remembered)
			accepted(t, ring, text)
			record()
		}
		if again := lastUsed(used); !again.Equal(*first) {
			t.Errorf("recorded again after %s", again.Sub(*first))
		}
		manual.move(30 * time.Second)
		holdfasttest.Advance(t, hf, 30*time.Second)
		accepted(t, ring, text)
		record()
		if again := lastUsed(used); again.Sub(*first) < time.Minute {
			t.Errorf("the use a minute later is recorded as %s later", again.Sub(*first))
		}
		// Another node that has seen an earlier use does not set it back.
		slow, slowClock := newRing(hf)
		accepted(t, slow, text)
		slowClock.move(time.Hour)
		before := lastUsed(used)
		if err := slow.RecordUses(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now := lastUsed(used); !now.Equal(*before) {
			t.Errorf("an earlier use set the time from %s to %s", before, now)
		}
	})
}

// TestAUseThatCannotBeRecordedWaits verifies that a failure does not lose a use.
func TestAUseThatCannotBeRecordedWaits(t *testing.T) {
	hf := holdfasttest.Open(t)
	k, text := create(t, hf, plain)
	f := &failing{Doer: engine.Of(hf)}
	ring, _ := newRing(f)
	accepted(t, ring, text)
	f.now = true
	if err := ring.RecordUses(t.Context()); err == nil {
		t.Error("want an error")
	}
	f.now = false
	if err := ring.RecordUses(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := keys.Get(t.Context(), engine.Of(hf), k.ID); err != nil || got.LastUsedAt == nil {
		t.Errorf("got %+v, error %v", got, err)
	}
}

// failing is a doer that fails on demand.
type failing struct {
	store.Doer
	now bool
}

func (f *failing) Do(ctx context.Context, c store.Command) error {
	if f.now {
		return fault.New(fault.Unavailable, "no")
	}
	return f.Doer.Do(ctx, c)
}
