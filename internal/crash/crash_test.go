package crash_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Closing(m)) }

// scene is an engine that crashes, and the same file without crashes.
type scene struct {
	*testing.T
	db   *crash.OpenDatabase
	plan crash.Plan
	hf   *holdfast.Engine
	ctx  context.Context
}

func newScene(t *testing.T) *scene {
	s := &scene{T: t, ctx: context.Background(), db: crash.StayOpen(store.DatabaseOf(sqlite.File(filepath.Join(t.TempDir(), "a.db"))))}
	s.open()
	t.Cleanup(func() {
		if err := errors.Join(s.hf.Close(), s.db.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *scene) open() {
	s.Helper()
	hf, err := holdfast.Open(context.Background(), store.HandleDatabase(crash.Wrap(s.db, &s.plan)), holdfast.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.Fatal(err)
	}
	s.hf = hf
}

// reopen opens a new engine on the file as it was left.
func (s *scene) reopen() {
	s.Helper()
	if err := s.hf.Close(); err != nil {
		s.Error(err)
	}
	s.open()
}

func one(ctx context.Context, d holdfast.Doer, name string) error {
	_, err := stream.Append(ctx, d, name, stream.None, stream.Event{Name: "a"})
	return err
}

// two appends to two streams in one transaction.
func (s *scene) two(ctx context.Context) error {
	return s.hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		return errors.Join(one(ctx, tx, "a"), one(ctx, tx, "b"))
	})
}

func (s *scene) events(name string) int {
	s.Helper()
	s.plan.Disarm()
	all, err := holdfast.Collect(stream.Read(s.ctx, s.hf, name, 0))
	if err != nil {
		s.Fatal(err)
	}
	return len(all)
}

func (s *scene) points() (names []string) {
	met, _ := s.plan.Disarm()
	for _, p := range met {
		name := p.Name
		if p.Fault != crash.None {
			name += " " + p.Fault.String()
		}
		names = append(names, name)
	}
	return names
}

// TestFaults verifies the effect of each fault on a command, on a command inside a transaction and on a commit:
// what is left in the database, what the caller gets, and whether the engine is alive.
func TestFaults(t *testing.T) {
	shared := newScene(t)
	for i, c := range []struct {
		strikes string
		alone   bool  // one append instead of two in a transaction
		want    error // nil: the outcome was resolved, or it was retried
		events  int
		dead    bool
	}{
		// the first points resolve the workspace's partition and its registry
		{"3:before", true, crash.ErrCrashed, 0, true},
		{"3:after", true, crash.ErrCrashed, 1, true},
		{"3:error", true, nil, 1, false},
		{"3:lost", true, nil, 1, false},
		{"3:cancel", true, context.Canceled, 0, false},
		{"3:error!", true, holdfast.ErrOutcomeUnknown, 1, true},
		{"3:lost!", true, holdfast.ErrOutcomeUnknown, 0, true},
		{"3:cancel!", true, context.Canceled, 0, false},

		{"4:before", false, crash.ErrCrashed, 0, true},
		{"4:after", false, crash.ErrCrashed, 0, true},
		{"4:error", false, holdfast.ErrUnavailable, 0, false},
		{"4:lost", false, nil, 1, false},
		{"4:cancel", false, context.Canceled, 0, false},
		{"4:lost!", false, crash.ErrCrashed, 0, true},
		{"4:cancel!", false, context.Canceled, 0, false},

		{"5:before", false, crash.ErrCrashed, 0, true},
		{"5:after", false, crash.ErrCrashed, 1, true},
		{"5:error", false, nil, 1, false},
		{"5:lost", false, nil, 1, false},
		{"5:cancel", false, context.Canceled, 0, false},
	} {
		t.Run(fmt.Sprintf("%s alone %v", c.strikes, c.alone), func(t *testing.T) {
			s := shared
			s.T, s.ctx = t, holdfast.InWorkspace(context.Background(), fmt.Sprintf("w%d", i))
			strikes, err := crash.Parse(c.strikes)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := s.plan.Request(s.ctx)
			defer cancel()
			s.plan.Arm(strikes...)
			if c.alone {
				err = one(ctx, s.hf, "a")
			} else {
				err = s.two(ctx)
			}
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if s.plan.Dead() != c.dead {
				t.Errorf("dead is %v after points %q", !c.dead, s.points())
			}
			if c.dead {
				s.deadThroughout()
				s.reopen()
			}
			if got := s.events("a"); got != c.events {
				t.Errorf("got %d events, want %d", got, c.events)
			}
			if got := s.events("b"); !c.alone && got != c.events {
				t.Errorf("other stream has %d events, want %d", got, c.events)
			}
		})
	}
}

// deadThroughout checks that a crashed engine does nothing any more.
func (s *scene) deadThroughout() {
	s.Helper()
	_, read := holdfast.Collect(stream.Read(context.Background(), s.hf, "a", 0))
	for _, err := range []error{read, one(context.Background(), s.hf, "late"), s.two(context.Background())} {
		if !errors.Is(err, crash.ErrCrashed) {
			s.Errorf("a crashed engine returned %v, want ErrCrashed", err)
		}
	}
}

// TestSwallowedFault verifies that a transaction is rolled back even if its function ignores the fault.
func TestSwallowedFault(t *testing.T) {
	s := newScene(t)
	for _, f := range []crash.Fault{crash.Before, crash.After, crash.Error} {
		s.ctx = holdfast.InWorkspace(context.Background(), f.String())
		s.plan.Arm(crash.Strike{At: 4, Fault: f})
		err := s.hf.Update(s.ctx, func(ctx context.Context, tx holdfast.Tx) error {
			_ = one(ctx, tx, "a")
			_ = one(ctx, tx, "b")
			return nil
		})
		if err == nil {
			t.Errorf("%s: the commit is reported as successful", f)
		}
		if s.plan.Dead() {
			s.reopen()
		}
		if a, b := s.events("a"), s.events("b"); a+b != 0 {
			t.Errorf("%s: %d and %d events are stored, want none", f, a, b)
		}
	}
}

// TestNumbering verifies that the same run has the same points, that a second strike counts from the first, and
// that a permanent fault ends with the engine.
func TestNumbering(t *testing.T) {
	s := newScene(t)
	ctx := context.Background()
	do := func(name string) { _ = one(holdfast.InWorkspace(ctx, name), s.hf, "a") }

	s.plan.Arm()
	do("w1")
	if got, want := s.points(), []string{"do workspaces.assign_shard", "do registry.get", "do events.append"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.plan.Arm(crash.Strike{At: 3, Fault: crash.Lost}, crash.Strike{At: 2, Fault: crash.After})
	do("w2")
	if got, want := s.points(), []string{"do workspaces.assign_shard", "do registry.get", "do events.append lost", "do events.void_command", "do events.append after"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.reopen()
	s.plan.Arm(crash.Strike{At: 3, Fault: crash.Lost, ForGood: true})
	do("w3")
	want := []string{"do workspaces.assign_shard", "do registry.get", "do events.append lost", "do events.void_command lost", "do events.void_command lost", "do events.void_command before"}
	if got := s.points(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.reopen()
	s.plan.Arm(crash.Strike{At: 99, Fault: crash.Before})
	do("w3")
	if _, left := s.plan.Disarm(); left != 1 {
		t.Errorf("%d strikes are left, want 1", left)
	}
}

// TestRawAndJoin verifies that a wrapper does not hide the adapter's store.
func TestRawAndJoin(t *testing.T) {
	s := newScene(t)
	if base := fmt.Sprintf("%T", engine.Of(s.hf).Runner().Base()); base != "*sqlite.adapter" {
		t.Errorf("base adapter is %s, want *sqlite.adapter", base)
	}
	err := s.hf.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) error {
		_, err := sqlite.Raw(tx).ExecContext(ctx, `CREATE TABLE mine (a)`)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestStrikesAsText verifies that printed strikes can be parsed, and that nothing else can.
func TestStrikesAsText(t *testing.T) {
	for _, text := range []string{"7:after", "7:after,2:before", "1:lost!", "3:cancel!,1:error"} {
		all, err := crash.Parse(text)
		if err != nil || crash.Format(all) != text {
			t.Errorf("%q is formatted as %q, error %v", text, crash.Format(all), err)
		}
	}
	for _, text := range []string{"", "7", "0:after", "x:after", "7:none", "7:never", "7:after,", "-1:lost"} {
		if all, err := crash.Parse(text); err == nil {
			t.Errorf("%q is parsed as %v, want an error", text, all)
		}
	}
}

var _ store.Database = (*crash.OpenDatabase)(nil)
