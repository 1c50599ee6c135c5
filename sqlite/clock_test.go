package sqlite_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/sqlite"
)

// wrongClock is a clock that a test sets wrong for the engines that it opens on a file.
type wrongClock struct {
	by   atomic.Int64
	path string
}

func (c *wrongClock) set(by time.Duration) { c.by.Store(int64(by)) }

func (c *wrongClock) open(t *testing.T) *holdfast.Engine {
	t.Helper()
	return holdfasttest.OpenOn(t, sqlite.File(c.path, sqlite.Wrong(func() time.Duration { return time.Duration(c.by.Load()) })))
}

// ahead returns by how much the database's time is ahead of the clock before it was set wrong.
func ahead(t *testing.T, hf *holdfast.Engine) time.Duration {
	t.Helper()
	s, err := hf.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(s.Now)
}

// wantAhead checks the times of engines, with a tolerance for the time that passes meanwhile.
func wantAhead(t *testing.T, when string, want time.Duration, engines ...*holdfast.Engine) {
	t.Helper()
	for i, hf := range engines {
		if got := ahead(t, hf); got < want-5*time.Minute || got > want+5*time.Minute {
			t.Errorf("%s: the clock of engine %d is ahead by %s, want %s", when, i, got, want)
		}
	}
}

// TestATimeThatGoesOnWhenTheClockIsSetBack verifies that the time continues when the clock is set
// back by an hour, in each of several engines on a file, in one opened then, and in one opened
// first after the step; that a lease that expires within a minute does so, at half speed; that the
// time meets the clock after two hours; and that a clock set back by more than a day, or forward,
// is followed.
func TestATimeThatGoesOnWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	c := &wrongClock{path: holdfasttest.SQLite(t)}
	a, b := c.open(t), c.open(t)
	if _, err := scopestore.Put(t.Context(), engine.Of(a), scopestore.PutArgs{Kind: "k", ID: "x", State: []byte(`{}`), TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	wantAhead(t, "at first", 0, a, b)
	c.set(-time.Hour)
	wantAhead(t, "set back", 0, a, b, a)
	wantAhead(t, "set back and opened", 0, c.open(t))
	if _, err := scopestore.Get(t.Context(), engine.Of(b), "k", "x"); err != nil {
		t.Errorf("scope expired too early: %v", err)
	}
	c.set(-40 * time.Minute) // twenty minutes pass, by the wall clock only
	wantAhead(t, "after twenty minutes", 10*time.Minute, a, b)
	if _, err := scopestore.Get(t.Context(), engine.Of(b), "k", "x"); !errors.Is(err, holdfast.ErrNotFound) {
		t.Errorf("scope did not expire: %v", err)
	}
	c.set(90 * time.Minute)
	wantAhead(t, "when it has caught up", 90*time.Minute, a, b, c.open(t))
	c.set(-48 * time.Hour)
	wantAhead(t, "set back by days", -48*time.Hour, a, b)
}

// TestATimeThatGoesOnWhenTheClockWasSetBackMeanwhile verifies that the time continues after a clock
// was set back while no engine was open.
func TestATimeThatGoesOnWhenTheClockWasSetBackMeanwhile(t *testing.T) {
	t.Parallel()
	c := &wrongClock{path: holdfasttest.SQLite(t)}
	t.Run("before", func(t *testing.T) {
		if _, err := scopestore.Put(t.Context(), engine.Of(c.open(t)), scopestore.PutArgs{Kind: "k", ID: "x", State: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	})
	c.set(-time.Hour)
	t.Run("after", func(t *testing.T) { wantAhead(t, "set back", 0, c.open(t), c.open(t)) })
}
