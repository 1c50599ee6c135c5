package streamclose_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/streamclose"
	"github.com/holdfast-go/holdfast/stream"
)

// TestModes verifies the result of each mode, that a repeated request returns the same
// result and changes nothing, and that another mode or another covered version is
// refused.
func TestModes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for _, c := range []struct {
			mode  streamclose.Mode
			want  streamclose.Closed
			reads string
		}{
			{streamclose.Archive, streamclose.Closed{Stream: "archive", Mode: streamclose.Archive, First: 0, Last: 2}, "0:a 1:a 2:a"},
			{streamclose.Tombstone, streamclose.Closed{Stream: "tombstone", Mode: streamclose.Tombstone, First: 3, Last: 3}, "3:$tombstone"},
			{streamclose.Restart, streamclose.Closed{Stream: "restart", Mode: streamclose.Restart, First: 3, Last: 3}, "3:$snapshot"},
		} {
			name := string(c.mode)
			add(t, hf, name, 3)
			a := streamclose.Args{Stream: name, Mode: c.mode, ExpectVersion: new(int64(2))}
			if c.mode == streamclose.Restart {
				a.Snapshot = []byte(`{"sum":1}`)
			}
			for range 3 {
				if got, err := streamclose.Close(ctx, engine.Of(hf), a); err != nil || got != c.want {
					t.Errorf("%s: got %+v, error %v", name, got, err)
				}
				reads(t, hf, name, c.reads)
			}
			a.Export = func(context.Context, int64, int64) error { return errors.New("exported again") }
			if got, err := streamclose.Close(ctx, engine.Of(hf), a); err != nil || got != c.want {
				t.Errorf("%s in steps: got %+v, error %v", name, got, err)
			}
			if c.mode == streamclose.Restart {
				continue
			}
			a.ExpectVersion = nil
			if got, err := streamclose.Close(ctx, engine.Of(hf), a); err != nil || got != c.want {
				t.Errorf("%s at any version: got %+v, error %v", name, got, err)
			}
			for _, other := range []int64{1, 3} {
				a.ExpectVersion = &other
				_, err := streamclose.Close(ctx, engine.Of(hf), a)
				refused(t, err, fault.Conflict, "already closed ("+name+") at version 2")
			}
			_, err := restart(hf, name, 2, `{}`)
			refused(t, err, fault.Conflict, "already closed")
			_, err = stream.Append(ctx, hf, name, stream.Any, stream.Event{Name: "late"})
			refused(t, err, fault.StreamClosed)
			for _, other := range modes {
				if other != c.mode && other != streamclose.Restart {
					_, err := closeAt(hf, name, other, nil)
					refused(t, err, fault.Conflict, "already closed ("+name+")")
				}
			}
		}
	})
}

// TestRestartGoesOn verifies that a restarted stream takes events after its snapshot, at
// the following versions, and can be restarted again; and that a snapshot that covers
// another version is refused with an error that says what to do.
func TestRestartGoesOn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		add(t, hf, "s", 3)
		for _, version := range []int64{1, 3, math.MaxInt64} {
			_, err := restart(hf, "s", version, `{}`)
			refused(t, err, fault.Concurrency, "at version 2", fmt.Sprint("covers version ", version), "make a new snapshot")
			if field(err, "expectedVersion") != version || field(err, "lastVersion") != int64(2) {
				t.Errorf("got error %v", err)
			}
		}
		reads(t, hf, "s", "0:a 1:a 2:a")
		if _, err := restart(hf, "s", 2, `{"sum": 1}`); err != nil {
			t.Fatal(err)
		}
		if last, err := stream.Append(ctx, hf, "s", 3, stream.Event{Name: "b"}); err != nil || last != 4 {
			t.Errorf("got version %d, error %v, want 4", last, err)
		}
		_, err := stream.Append(ctx, hf, "s", stream.None, stream.Event{Name: "b"})
		refused(t, err, fault.Concurrency)
		reads(t, hf, "s", "3:$snapshot 4:b")
		if got, err := restart(hf, "s", 4, `{"sum": 2}`); err != nil || got.First != 5 || got.Last != 5 {
			t.Errorf("restart returned %+v, error %v", got, err)
		}
		reads(t, hf, "s", "5:$snapshot")
		if all, err := holdfast.Collect(stream.Read(ctx, hf, "s", 0)); err != nil || len(all) != 1 || string(all[0].Data) != `{"sum": 2}` {
			t.Errorf("got events %+v, error %v", all, err)
		}
		if got, err := restart(hf, "s", 5, `{"sum": 2}`); err != nil || got.Last != 6 { // another close, although its snapshot is the same
			t.Errorf("second restart returned %+v, error %v", got, err)
		}
	})
}

// TestARestartIsRepeated verifies that a repeated restart returns the same result and
// removes no event appended since, even while a reaction needs the stream or another
// caller closes it; that a restart with another snapshot is refused; and that the
// repeated restart is refused, and removes nothing, once the stream was restarted again,
// truncated or closed.
func TestARestartIsRepeated(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		var again func(name string)
		for name, c := range map[string]struct {
			then  func(name string)
			code  fault.Code
			reads string
		}{
			"appended": {func(string) {}, "", "3:$snapshot 4:a"},
			"lagging":  {func(name string) { follow(t, hf, "mailer", name, 3, 4, "") }, "", "3:$snapshot 4:a"},
			"being closed": {func(name string) {
				full := errors.New("the disk is full")
				if _, err := closeAt(hf, name, streamclose.Tombstone, func(context.Context, int64, int64) error { again(name); return full }); !errors.Is(err, full) {
					t.Errorf("got error %v, want that of the export", err)
				}
			}, "", "3:$snapshot 4:a"},
			"restarted": {func(name string) {
				if _, err := restart(hf, name, 4, `{"sum":1}`); err != nil {
					t.Error(err)
				}
				add(t, hf, name, 1)
			}, fault.Concurrency, "5:$snapshot 6:a"},
			"truncated": {func(name string) {
				if err := streamclose.Truncate(ctx, engine.Of(hf), name, 4, nil); err != nil {
					t.Error(err)
				}
			}, fault.Concurrency, "4:a"},
			"archived": {func(name string) {
				if _, err := closeAt(hf, name, streamclose.Archive, nil); err != nil {
					t.Error(err)
				}
			}, fault.Conflict, "3:$snapshot 4:a"},
		} {
			again = func(name string) {
				t.Helper()
				for _, export := range []func(context.Context, int64, int64) error{nil,
					func(context.Context, int64, int64) error { return errors.New("exported again") }} {
					got, err := streamclose.Close(ctx, engine.Of(hf), streamclose.Args{Stream: name, Mode: streamclose.Restart, ExpectVersion: new(int64(2)), Snapshot: []byte(`{ "sum" : 1 }`), Export: export})
					if fault.CodeOf(err) != c.code || err == nil && got != (streamclose.Closed{Stream: name, Mode: streamclose.Restart, First: 3, Last: 3}) {
						t.Errorf("%s: got %+v, error %v", name, got, err)
					}
				}
			}
			add(t, hf, name, 3)
			if _, err := restart(hf, name, 2, `{"sum":1}`); err != nil {
				t.Fatal(err)
			}
			add(t, hf, name, 1)
			if name == "lagging" {
				register(t, hf, "mailer", `["a"]`, "^lagging$", "live")
			}
			c.then(name)
			again(name)
			if c.code == "" {
				c.code = fault.Concurrency
			}
			_, err := restart(hf, name, 2, `{"sum":2}`)
			refused(t, err, c.code)
			reads(t, hf, name, c.reads)
		}
	})
}

// TestBadRequests verifies that invalid arguments are refused and change nothing.
func TestBadRequests(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		add(t, hf, "s", 1)
		for _, c := range []struct {
			a    streamclose.Args
			code fault.Code
		}{
			{streamclose.Args{Stream: "none", Mode: streamclose.Archive}, fault.NotFound},
			{streamclose.Args{Stream: "", Mode: streamclose.Archive}, fault.Validation},
			{streamclose.Args{Stream: "$task/q/1", Mode: streamclose.Archive}, fault.Forbidden},
			{streamclose.Args{Stream: "s"}, fault.Validation},
			{streamclose.Args{Stream: "s", Mode: "burn"}, fault.Validation},
			{streamclose.Args{Stream: "s", Mode: streamclose.Restart, ExpectVersion: new(int64(0))}, fault.Validation},
			{streamclose.Args{Stream: "s", Mode: streamclose.Restart, Snapshot: []byte(`{}`)}, fault.Validation},
			{streamclose.Args{Stream: "s", Mode: streamclose.Restart, ExpectVersion: new(int64(0)), Snapshot: []byte(`{`)}, fault.Validation},
			{streamclose.Args{Stream: "s", Mode: streamclose.Archive, ExpectVersion: new(int64(-1))}, fault.Validation},
			{streamclose.Args{Stream: "s", Mode: streamclose.Archive, Snapshot: []byte(`{}`)}, fault.Validation},
			{streamclose.Args{Stream: "s", Mode: streamclose.Archive, Lease: -1}, fault.Validation},
			{streamclose.Args{Stream: "s", Mode: streamclose.Archive, ExpectVersion: new(int64(7))}, fault.Concurrency},
		} {
			_, err := streamclose.Close(ctx, engine.Of(hf), c.a)
			refused(t, err, c.code)
		}
		other := holdfast.InWorkspace(ctx, "other")
		_, err := streamclose.Close(other, engine.Of(hf), streamclose.Args{Stream: "s", Mode: streamclose.Archive})
		refused(t, err, fault.NotFound)
		add(t, hf, "s", 1)
	})
}

// TestFailedExport verifies that an export which fails, panics or outlives its caller
// leaves the stream open with all its events.
func TestFailedExport(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		add(t, hf, "s", 2)
		full := errors.New("the disk is full")
		if _, err := closeAt(hf, "s", streamclose.Tombstone, func(context.Context, int64, int64) error { return full }); !errors.Is(err, full) {
			t.Errorf("got error %v, want that of the export", err)
		}
		add(t, hf, "s", 1)
		func() {
			defer func() {
				if p := recover(); p != "ouch" {
					t.Errorf("got panic %v, want that of the export", p)
				}
			}()
			_, _ = closeAt(hf, "s", streamclose.Tombstone, func(context.Context, int64, int64) error { panic("ouch") })
		}()
		add(t, hf, "s", 1)
		gone, cancel := context.WithCancel(ctx)
		_, err := streamclose.Close(gone, engine.Of(hf), streamclose.Args{Stream: "s", Mode: streamclose.Tombstone, Export: func(ctx context.Context, _, _ int64) error {
			cancel()
			<-ctx.Done()
			return nil
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v, want context.Canceled", err)
		}
		add(t, hf, "s", 1)
		reads(t, hf, "s", "0:a 1:a 2:a 3:a 4:a")
	})
}

// TestDeadCloser verifies that a stream under a lease refuses appends and other closers,
// and that the error names the holder; and that after the lease has expired an append,
// another closer or a sweep reopens the stream, and the late closer can write nothing.
func TestDeadCloser(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		for name, c := range map[string]struct {
			revive func(t *testing.T, name string)
			reads  string
		}{
			"append": {func(t *testing.T, name string) { add(t, hf, name, 1) }, "0:a 1:a 2:a"},
			"closer": {func(t *testing.T, name string) {
				if got, err := closeAt(hf, name, streamclose.Tombstone, nil); err != nil || got.Last != 2 {
					t.Errorf("close returned %+v, error %v", got, err)
				}
			}, "2:$tombstone"},
			"closer in steps": {func(t *testing.T, name string) {
				if got, err := closeAt(hf, name, streamclose.Restart, func(context.Context, int64, int64) error { return nil }); err != nil || got.Last != 2 {
					t.Errorf("close returned %+v, error %v", got, err)
				}
			}, "2:$snapshot"},
			"sweep": {func(t *testing.T, name string) {
				if n, err := streamclose.SweepAll(ctx, engine.Of(hf)); n == 0 || err != nil { // including those that were not reopened
					t.Errorf("sweep reopened %d streams, error %v, want some", n, err)
				}
				if n, err := streamclose.SweepAll(ctx, engine.Of(hf)); n != 0 || err != nil {
					t.Errorf("second sweep reopened %d streams, error %v, want 0", n, err)
				}
				add(t, hf, name, 1)
			}, "0:a 1:a 2:a"},
			"nobody": {func(*testing.T, string) {}, "0:a 1:a"},
		} {
			for _, mode := range modes {
				name := name + " after " + string(mode)
				add(t, hf, name, 2)
				_, err := closeAt(hf, name, mode, func(ctx context.Context, _, _ int64) error {
					_, err := stream.Append(ctx, hf, name, stream.Any, stream.Event{Name: "a"})
					refused(t, err, fault.StreamClosed)
					_, err = closeAt(hf, name, streamclose.Archive, nil)
					refused(t, err, fault.Conflict, "is being closed by close-")
					if by, ok := field(err, "holder").(string); !ok || !strings.HasPrefix(by, "close-") {
						t.Errorf("error has holder %v, want the prefix close-", by)
					}
					refused(t, streamclose.Truncate(ctx, engine.Of(hf), name, 1, nil), fault.Conflict, "is being closed by")
					if _, err := streamclose.SweepAll(ctx, engine.Of(hf)); err != nil {
						t.Error(err)
					}
					_, err = stream.Append(ctx, hf, name, stream.Any, stream.Event{Name: "a"})
					refused(t, err, fault.StreamClosed)
					holdfasttest.Advance(t, hf, lease.DefaultDuration+time.Second)
					c.revive(t, name)
					return nil
				})
				refused(t, err, fault.LeaseLost)
				reads(t, hf, name, c.reads)
			}
		}
		if _, err := streamclose.SweepAll(ctx, engine.Of(hf)); err != nil { // those that were not reopened
			t.Error(err)
		}
	})
}

// TestLateCloserMeetsANewHold verifies that a closer whose lease expired, and whose
// stream another closer has leased, can neither end nor release it.
func TestLateCloserMeetsANewHold(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		add(t, hf, "s", 1)
		got, err := closeAt(hf, "s", streamclose.Restart, func(context.Context, int64, int64) error {
			holdfasttest.Advance(t, hf, lease.DefaultDuration+time.Second)
			_, err := closeAt(hf, "s", streamclose.Tombstone, func(context.Context, int64, int64) error { return nil })
			return errors.Join(err, errors.New("failed late"))
		})
		if err == nil {
			t.Errorf("close returned %+v, want an error", got)
		}
		reads(t, hf, "s", "1:$tombstone")

		add(t, hf, "r", 1)
		var late error
		_, err = closeAt(hf, "r", streamclose.Archive, func(context.Context, int64, int64) error {
			holdfasttest.Advance(t, hf, lease.DefaultDuration+time.Second)
			return nil
		})
		refused(t, err, fault.LeaseLost)
		_, err = closeAt(hf, "r", streamclose.Archive, func(context.Context, int64, int64) error {
			holdfasttest.Advance(t, hf, lease.DefaultDuration+time.Second)
			_, late = closeAt(hf, "r", streamclose.Archive, func(context.Context, int64, int64) error { return nil })
			return nil
		})
		refused(t, err, fault.LeaseLost)
		if late != nil {
			t.Errorf("second close returned error %v", late)
		}
		reads(t, hf, "r", "0:a")
	})
}

// TestLongExport verifies that the lease of an export is renewed.
func TestLongExport(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		add(t, hf, "s", 1)
		_, err := streamclose.Close(ctx, engine.Of(hf), streamclose.Args{Stream: "s", Mode: streamclose.Archive, Lease: 6 * time.Second, // a busy machine may stop for a while
			Export: func(ctx context.Context, _, _ int64) error {
				var first time.Time
				for {
					_, err := closeAt(hf, "s", streamclose.Archive, nil)
					until, ok := field(err, "until").(time.Time)
					if !ok {
						return fmt.Errorf("the close lost its lease on the stream: %w", err)
					}
					if first.IsZero() {
						first = until
					}
					if until.After(first) {
						return nil
					}
					if err := clock.Wait(ctx, 20*time.Millisecond); err != nil {
						return err
					}
				}
			}})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestReactionsKeepTheBooksOpen verifies that a stream that a reaction still needs is
// neither closed nor truncated, in one step or in several, that the error names the
// reaction and the reason, that the stream stays open, and that it can be closed once
// the reaction has caught up.
func TestReactionsKeepTheBooksOpen(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		add(t, hf, "warm", 1) // the engine has cached a registry without reactions
		register(t, hf, "mailer", `["a"]`, "", "live")
		register(t, hf, "other", `["*"]`, "^x", "live")
		register(t, hf, "late", `["*"]`, "^r", "waiting")
		for _, c := range []struct {
			name, why      string
			watermark, due int
			more           string
		}{
			{"s-lagging", "mailer (lagging)", 0, 2, ""},
			{"s-held", "mailer (held)", 2, 2, "holder, until='me', NOW"},
			{"s-blocked", "mailer (blocked)", 0, 2, "blocked=" + map[bool]string{true: "1", false: "true"}[onSQLite(t)]},
			{"registering", "late (registering)", 2, 2, ""},
			{"s-marked", "mailer (lagging)", math.MinInt, 0, ""},
		} {
			add(t, hf, c.name, 3)
			if c.watermark != math.MinInt { // otherwise as the appends left it
				follow(t, hf, "mailer", c.name, c.watermark, c.due, c.more)
			}
			for _, export := range []func(context.Context, int64, int64) error{nil,
				func(context.Context, int64, int64) error { return errors.New("exported") }} {
				for _, mode := range modes {
					_, err := closeAt(hf, c.name, mode, export)
					refused(t, err, fault.Conflict, "still needed by "+c.why)
					if by, ok := field(err, "reactions").([]streamclose.Behind); !ok || len(by) != 1 || by[0].Reaction+" ("+by[0].Why+")" != c.why {
						t.Errorf("%s: error has reactions %+v", c.name, by)
					}
				}
			}
			if c.why != "mailer (held)" { // it has handled them
				refused(t, streamclose.Truncate(ctx, engine.Of(hf), c.name, 2, nil), fault.Conflict, "still needed by "+c.why)
			}
			reads(t, hf, c.name, "0:a 1:a 2:a")
			add(t, hf, c.name, 1)
			follow(t, hf, "mailer", c.name, 3, 3, "")
			if c.name != "registering" {
				if _, err := closeAt(hf, c.name, streamclose.Tombstone, nil); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
		}
	})
}

// TestReactionComesDuringTheExport verifies that a reaction which is registered or reset
// during the export keeps the events.
func TestReactionComesDuringTheExport(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		register(t, hf, "mailer", `["a"]`, "", "live")
		for name, come := range map[string]func(){
			"new":   func() { register(t, hf, "second", `["*"]`, "^new$", "waiting") },
			"reset": func() { follow(t, hf, "mailer", "reset", -1, 1, "") },
		} {
			add(t, hf, name, 2)
			follow(t, hf, "mailer", name, 1, 1, "")
			_, err := closeAt(hf, name, streamclose.Tombstone, func(context.Context, int64, int64) error {
				come()
				return nil
			})
			refused(t, err, fault.Conflict, "still needed by")
			reads(t, hf, name, "0:a 1:a")
			add(t, hf, name, 1)
		}
	})
}

// TestReactionsLearnOfTheEnd verifies that the event which a close writes is due for the
// reactions that select it, and for no others.
func TestReactionsLearnOfTheEnd(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		add(t, hf, "s", 1)
		register(t, hf, "all", `["*"]`, "", "live")
		register(t, hf, "ends", `["$tombstone"]`, "", "live")
		register(t, hf, "mail", `["a"]`, "", "live")
		if _, err := closeAt(hf, "s", streamclose.Tombstone, nil); err != nil {
			t.Fatal(err)
		}
		table := "due"
		if onSQLite(t) {
			table = "follow"
		}
		if n := rows(t, hf, table, "s"); n != 2 {
			t.Errorf("got due notices for %d reactions, want 2", n)
		}
		add(t, hf, "r", 1)
		follow(t, hf, "all", "r", 0, 0, "")
		follow(t, hf, "mail", "r", 0, 0, "")
		if _, err := closeAt(hf, "r", streamclose.Restart, nil); err != nil {
			t.Error(err)
		}
		_, err := closeAt(hf, "r", streamclose.Restart, nil)
		refused(t, err, fault.Conflict, "all (lagging)")
	})
}
