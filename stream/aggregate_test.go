package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/snapshots"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/stream"
)

// purse holds a balance, and in a map what the fold changes in place: a state
// that is folded twice shows.
type purse struct {
	Balance int
	Counts  map[string]int
	Last    time.Time
}

var errTooLittle = errors.New("too little")

func foldPurse(p purse, e stream.Event) (purse, error) {
	var moved struct{ By int }
	if err := json.Unmarshal(e.Data, &moved); err != nil {
		return p, err
	}
	if e.Name == "refused" {
		return p, errors.New("no such event")
	}
	if p.Counts == nil {
		p.Counts = make(map[string]int)
	}
	p.Counts[e.Name]++
	p.Balance += moved.By
	p.Last = e.At
	return p, nil
}

// counted is foldPurse with a count of its calls.
func counted(calls *atomic.Int64) func(purse, stream.Event) (purse, error) {
	return func(p purse, e stream.Event) (purse, error) {
		calls.Add(1)
		return foldPurse(p, e)
	}
}

func by(n int) stream.Event {
	return stream.Event{Name: "moved", Data: fmt.Appendf(nil, `{"by": %d}`, n)}
}

func add(n int) func(purse) ([]stream.Event, error) {
	return func(purse) ([]stream.Event, error) { return []stream.Event{by(n)}, nil }
}

func take(n int) func(purse) ([]stream.Event, error) {
	return func(p purse) ([]stream.Event, error) {
		if p.Balance < n {
			return nil, errTooLittle
		}
		return []stream.Event{by(-n)}, nil
	}
}

func mustDo[S any](t *testing.T, a *stream.Aggregate[S], d holdfast.Doer, id string, decide func(S) ([]stream.Event, error)) S {
	t.Helper()
	s, err := a.Do(t.Context(), d, id, decide)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustLoad[S any](t *testing.T, a *stream.Aggregate[S], d holdfast.Doer, id string) (S, stream.Version) {
	t.Helper()
	s, v, err := a.Load(t.Context(), d, id)
	if err != nil {
		t.Fatal(err)
	}
	return s, v
}

// meddle changes the database behind the engine's back. In the statement a table
// is @x and an argument $1; types are for PostgreSQL.
func meddle(t *testing.T, hf *holdfast.Engine, statement string, args ...any) {
	t.Helper()
	err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
		text := strings.ReplaceAll(statement, "@", "holdfast_")
		if storetest.IsSQLite(tx) {
			text = strings.NewReplacer("::text", "", "::json", "").Replace(text)
		}
		n, err := storetest.Exec(ctx, tx, text, args...)
		if err == nil && n == 0 {
			err = errors.New("the statement changed no rows")
		}
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// TestRacingDosNeverBreakAnInvariant verifies that of 32 callers who all withdraw
// until there is too little, half of them in transactions, just as many succeed
// as there is money for; that the balance is never below zero at any version; and
// that each decision was made on the state that it was appended to.
func TestRacingDosNeverBreakAnInvariant(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		purses := stream.Fold("purse-", foldPurse, stream.MaxAttempts(1000), stream.SnapshotEvery(4, "1"))
		const amount, each = 100, 5
		mustDo(t, purses, hf, "a", add(amount))
		var taken atomic.Int64
		_, lost := holdfasttest.Race(t, 32, func(i int) error {
			for {
				var d holdfast.Doer = hf
				do := func(ctx context.Context) error {
					_, err := purses.Do(ctx, d, "a", take(each))
					return err
				}
				var err error
				if i%2 == 0 {
					err = do(t.Context())
				} else {
					err = hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
						d = tx
						return do(ctx)
					})
				}
				if err != nil {
					return err
				}
				taken.Add(each)
			}
		})
		for _, err := range lost {
			if !errors.Is(err, errTooLittle) {
				t.Errorf("caller got %v, want errTooLittle", err)
			}
		}
		if taken.Load() != amount {
			t.Errorf("took %d, want %d", taken.Load(), amount)
		}
		balance := 0
		all, err := holdfast.Collect(stream.Read(t.Context(), hf, "purse-a", 0))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			var moved struct{ By int }
			if err := json.Unmarshal(e.Data, &moved); err != nil {
				t.Fatal(err)
			}
			if balance += moved.By; balance < 0 {
				t.Errorf("got balance %d at version %d, want it not negative", balance, e.Version)
			}
		}
		if p, v := mustLoad(t, purses, hf, "a"); p.Balance != 0 || v != amount/each || p.Counts["moved"] != amount/each+1 {
			t.Errorf("got purse %+v at version %d", p, v)
		}
	})
}

// TestDoGivesUpAfterItsAttempts verifies that a Do that is overtaken each time
// decides as often as it may, writes nothing, and says so.
func TestDoGivesUpAfterItsAttempts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		stream.Fold("purse-", foldPurse, stream.MaxAttempts(0)) // 0 is the default
		purses := stream.Fold("purse-", foldPurse, stream.MaxAttempts(3))
		decided := 0
		_, err := purses.Do(t.Context(), hf, "a", func(p purse) ([]stream.Event, error) {
			if p.Balance != decided {
				t.Errorf("attempt %d got purse %+v", decided+1, p)
			}
			decided++
			_, err := stream.Append(t.Context(), hf, "purse-a", stream.Any, by(1))
			return []stream.Event{by(100)}, err
		})
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || !errors.Is(err, holdfast.ErrConcurrency) || f.Fields["attempts"] != 3 || f.Fields["lastVersion"] != int64(2) || decided != 3 {
			t.Errorf("after %d decisions: got %v %+v, want ErrConcurrency after 3", decided, err, f)
		}
		if p, v := mustLoad(t, purses, hf, "a"); p.Balance != 3 || v != 2 {
			t.Errorf("got purse %+v at version %d, want 3 at 2", p, v)
		}
	})
}

// TestDoDecidesAnewInATransaction verifies that a Do in a transaction that is
// overtaken sees the newer events and succeeds, within the same transaction.
func TestDoDecidesAnewInATransaction(t *testing.T) {
	t.Parallel()
	hf := holdfasttest.OpenOn(t, holdfasttest.At(holdfasttest.PostgreSQL(t))) // SQLite has one writer
	purses := stream.Fold("purse-", foldPurse)
	outside := t.Context()
	var seen []int
	err := hf.Update(outside, func(ctx context.Context, tx holdfast.Tx) error {
		seen = nil
		_, err := purses.Do(ctx, tx, "a", func(p purse) ([]stream.Event, error) {
			seen = append(seen, p.Balance)
			if len(seen) == 1 {
				if _, err := stream.Append(outside, hf, "purse-a", stream.Any, by(7)); err != nil {
					return nil, err
				}
			}
			return []stream.Event{by(1)}, nil
		})
		return err
	})
	if p, v := mustLoad(t, purses, hf, "a"); err != nil || fmt.Sprint(seen) != "[0 7]" || p.Balance != 8 || v != 1 {
		t.Errorf("decisions got %v (%v), purse is %+v at %d", seen, err, p, v)
	}
}

// TestDoWritesNothingThatWasNotDecided verifies that an error of decide is
// returned as it is, that no events are no write, that an event which cannot be
// folded is not appended, and that a transaction that is rolled back leaves
// nothing.
func TestDoWritesNothingThatWasNotDecided(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		purses := stream.Fold("purse-", foldPurse, stream.SnapshotEvery(1, "1"))
		if p, v := mustLoad(t, purses, hf, "a"); v != stream.None || p.Balance != 0 {
			t.Errorf("missing purse is %+v at version %d", p, v)
		}
		if _, err := purses.Do(t.Context(), hf, "a", take(1)); err != errTooLittle {
			t.Errorf("got %v, want the error of decide", err)
		}
		mustDo(t, purses, hf, "a", func(purse) ([]stream.Event, error) { return nil, nil })
		for _, name := range []string{"refused", "$snapshot", "$tombstone"} {
			if _, err := purses.Do(t.Context(), hf, "a", func(purse) ([]stream.Event, error) {
				return []stream.Event{by(1), {Name: name}}, nil
			}); err == nil {
				t.Errorf("an event %s was appended", name)
			}
		}
		err := hf.Update(t.Context(), func(ctx context.Context, tx holdfast.Tx) error {
			p, err := purses.Do(ctx, tx, "a", add(3))
			if err != nil || p.Balance != 3 {
				t.Errorf("got purse %+v in the transaction (%v), want 3", p, err)
			}
			return errTooLittle
		})
		if !errors.Is(err, errTooLittle) {
			t.Error(err)
		}
		if _, v := mustLoad(t, purses, hf, "a"); v != stream.None {
			t.Errorf("got stream version %d, want none", v)
		}
		if s, err := snapshots.Get(t.Context(), engine.Of(hf), "purse-a", "1/purse-"); err != nil || s.Version != -1 {
			t.Errorf("got snapshot %+v, %v of a rolled back purse", s, err)
		}
		if _, _, err := purses.Load(t.Context(), hf, ""); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("empty id: got %v, want ErrValidation", err)
		}
	})
}

// TestSnapshotsSaveFolding verifies that a Load folds only what is behind the
// newest snapshot and comes to the same state as one without, times included.
func TestSnapshotsSaveFolding(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		var calls atomic.Int64
		quick := stream.Fold("purse-", counted(&calls), stream.SnapshotEvery(10, "1"))
		plain := stream.Fold("purse-", foldPurse)
		for i := range 25 {
			if p := mustDo(t, quick, hf, "a", add(i)); p.Counts["moved"] != i+1 {
				t.Fatalf("after %d events: got purse %+v", i, p)
			}
		}
		calls.Store(0)
		got, v := mustLoad(t, quick, hf, "a")
		if n := calls.Load(); n != 5 || v != 24 {
			t.Errorf("load at version %d folded %d events, want 5: 20 of 25 are in the snapshot", v, n)
		}
		if want, _ := mustLoad(t, plain, hf, "a"); fmt.Sprint(got) != fmt.Sprint(want) || want.Last.IsZero() {
			t.Errorf("got %+v with the snapshot, %+v without", got, want)
		}
		kept, err := snapshots.Get(t.Context(), engine.Of(hf), "purse-a", "1/purse-")
		if err != nil || kept.Version != 19 {
			t.Errorf("got snapshot at version %d, want 19: %v", kept.Version, err)
		}
		mustDo(t, quick, hf, "a", func(purse) ([]stream.Event, error) { // past a multiple, not onto it
			return []stream.Event{by(1), by(1), by(1), by(1), by(1), by(1), by(1)}, nil
		})
		if kept, _ = snapshots.Get(t.Context(), engine.Of(hf), "purse-a", "1/purse-"); kept.Version != 31 {
			t.Errorf("got next snapshot at version %d, want 31", kept.Version)
		}
	})
}

// TestUnusableSnapshotsAreIgnored verifies that a snapshot that cannot be decoded,
// has another form, lies beyond the end of its stream, or has another codec
// changes no state.
func TestUnusableSnapshotsAreIgnored(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for i, bad := range []snapshots.Snapshot{
			{Version: 4, Data: []byte(`"text"`)},
			{Version: 4, Data: []byte(`{"Balance": 1000, "Wealth": 1}`)},
			{Version: 5, Data: []byte(`{"Balance": 1000}`)},
			{Version: 99, Data: []byte(`{"Balance": 1000}`)},
			{Version: 4, Data: []byte(`{"Balance": 1000}`), Kind: "0/purse-"},
		} {
			var calls atomic.Int64
			purses := stream.Fold("purse-", counted(&calls), stream.SnapshotEvery(1000, "1"))
			id := fmt.Sprint(i)
			for range 5 {
				mustDo(t, purses, hf, id, add(1))
			}
			bad.Stream = "purse-" + id
			if bad.Kind == "" {
				bad.Kind = "1/purse-"
			}
			if kept, err := snapshots.Put(t.Context(), engine.Of(hf), bad); err != nil || !kept {
				t.Fatal(kept, err)
			}
			calls.Store(0)
			if p, v := mustLoad(t, purses, hf, id); p.Balance != 5 || v != 4 || calls.Load() != 5 {
				t.Errorf("snapshot %s at %d: got purse %+v at version %d after %d events", bad.Data, bad.Version, p, v, calls.Load())
			}
			if p := mustDo(t, purses, hf, id, add(1)); p.Balance != 6 {
				t.Errorf("snapshot %s at %d: got purse %+v, want 6", bad.Data, bad.Version, p)
			}
		}
		// And one that fits is taken: the test would notice.
		purses := stream.Fold("purse-", foldPurse, stream.SnapshotEvery(1000, "1"))
		mustDo(t, purses, hf, "x", add(1))
		if _, err := snapshots.Put(t.Context(), engine.Of(hf), snapshots.Snapshot{Stream: "purse-x", Kind: "1/purse-", Data: []byte(`{"Balance": 1000}`)}); err != nil {
			t.Fatal(err)
		}
		if p, _ := mustLoad(t, purses, hf, "x"); p.Balance != 1000 {
			t.Errorf("the snapshot was not used: %+v", p)
		}
	})
}

// TestARestartedStreamGoesOnFromItsState verifies that the event that a restart
// leaves is the state itself, that a snapshot from before it is not used, and that
// a stream that was truncated without a state, or was removed, is an error.
func TestARestartedStreamGoesOnFromItsState(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for _, o := range [][]stream.FoldOption{nil, {stream.SnapshotEvery(3, "1")}} {
			id := fmt.Sprint(len(o))
			purses := stream.Fold("purse-", foldPurse, o...)
			for range 4 {
				mustDo(t, purses, hf, id, add(1))
			}
			restart(t, hf, "purse-"+id, stream.Event{Name: "$snapshot", Data: []byte(`{"Balance": 40}`)})
			if p, v := mustLoad(t, purses, hf, id); p.Balance != 40 || v != 4 || len(p.Counts) != 0 {
				t.Errorf("after the restart: got purse %+v at version %d, want 40 at 4", p, v)
			}
			for range 5 {
				mustDo(t, purses, hf, id, add(1))
			}
			if p, v := mustLoad(t, purses, hf, id); p.Balance != 45 || v != 9 || p.Counts["moved"] != 5 {
				t.Errorf("after five more events: got purse %+v at version %d, want 45 at 9", p, v)
			}
			restart(t, hf, "purse-"+id, by(1))
			if _, _, err := purses.Load(t.Context(), hf, id); fault.CodeOf(err) != fault.Conflict {
				t.Errorf("truncated stream without a state: got %v, want CONFLICT", err)
			}
			restart(t, hf, "purse-"+id, stream.Event{Name: "$tombstone"})
			if _, _, err := purses.Load(t.Context(), hf, id); fault.CodeOf(err) != fault.StreamClosed {
				t.Errorf("removed stream: got %v, want STREAM_CLOSED", err)
			}
		}
	})
}

// restart leaves one event of a stream, as closing its books does: what is below
// the first version is gone for everybody, before it is deleted.
func restart(t *testing.T, hf *holdfast.Engine, name string, e stream.Event) {
	t.Helper()
	last, err := stream.Append(t.Context(), hf, name, stream.Any, e)
	if err != nil {
		t.Fatal(err)
	}
	meddle(t, hf, `UPDATE @stream SET first = $1 WHERE name = $2`, int64(last), name)
}

// TestALongStreamIsFoldedWhole verifies that a stream of several pages is folded
// to its end, each event once, with a snapshot on the way or without.
func TestALongStreamIsFoldedWhole(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for id, size := range map[string]int{"exact": 2000, "more": 2345} {
			for done := 0; done < size; {
				var all []stream.Event
				for ; done < size && len(all) < 1000; done++ {
					all = append(all, by(1))
				}
				if _, err := stream.Append(t.Context(), hf, "purse-"+id, stream.Any, all...); err != nil {
					t.Fatal(err)
				}
			}
			var calls atomic.Int64
			purses := stream.Fold("purse-", counted(&calls))
			if p, v := mustLoad(t, purses, hf, id); p.Balance != size || v != stream.Version(size-1) || calls.Load() != int64(size) {
				t.Errorf("with %d events: got balance %d at version %d, folded %d", size, p.Balance, v, calls.Load())
			}
			kept := stream.Fold("purse-", foldPurse, stream.SnapshotEvery(size+1, "1"))
			mustDo(t, kept, hf, id, add(1))
			if p, v := mustLoad(t, kept, hf, id); p.Balance != size+1 || v != stream.Version(size) {
				t.Errorf("from the snapshot: got balance %d at version %d", p.Balance, v)
			}
		}
	})
}

// TestFoldRefusesMistakesInWiring verifies that what could never work, or would
// lose a part of the state, is found when the aggregate is declared.
func TestFoldRefusesMistakesInWiring(t *testing.T) {
	vault, err := stream.NewVault([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	//lint:ignore U1000 nobody outside can see it, which is the mistake
	type hidden struct{ balance int }
	type left struct {
		A int `json:"-"`
	}
	type deep struct{ All map[string][]*hidden }
	type called struct{ F func() }
	for name, declare := range map[string]func(){
		"no function":          func() { stream.Fold[int]("a", nil) },
		"prefix":               func() { foldOf[int]("a\n") },
		"attempts":             func() { foldOf[int]("a", stream.MaxAttempts(-1)) },
		"every":                func() { foldOf[int]("a", stream.SnapshotEvery(0, "1")) },
		"no codec":             func() { foldOf[int]("a", stream.SnapshotEvery(1, "")) },
		"codec with a slash":   func() { foldOf[int]("a", stream.SnapshotEvery(1, "a/1")) },
		"no vault":             func() { foldOf[int]("a", stream.WithVault(nil)) },
		"snapshots and sealed": func() { foldOf[int]("a", stream.WithVault(vault), stream.SnapshotEvery(1, "1")) },
		"unexported":           func() { foldOf[hidden]("a", stream.SnapshotEvery(1, "1")) },
		"left out":             func() { foldOf[left]("a", stream.SnapshotEvery(1, "1")) },
		"deep":                 func() { foldOf[deep]("a", stream.SnapshotEvery(1, "1")) },
		"function":             func() { foldOf[called]("a", stream.SnapshotEvery(1, "1")) },
		"interface":            func() { foldOf[error]("a", stream.SnapshotEvery(1, "1")) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the call did not panic")
				}
			}()
			declare()
		})
	}
	foldOf[hidden]("a") // without snapshots, anything is well
	foldOf[purse]("a", stream.SnapshotEvery(1, "1"))
	foldOf[map[string]any]("", stream.SnapshotEvery(1, "1"))
}

func foldOf[S any](prefix string, o ...stream.FoldOption) {
	stream.Fold(prefix, func(s S, _ stream.Event) (S, error) { return s, nil }, o...)
}
