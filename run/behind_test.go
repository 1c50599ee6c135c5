package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/stream"
)

// Steps recorded behind (docs/decisions/042-recorded-behind.md). The delays of records at the two extremes: a record is
// sent as soon as there is an end, while the next bodies run, or only where one must be.
const (
	atOnce = time.Nanosecond
	never  = time.Hour
)

// shapes are definitions of every kind around tasks with some options.
func shapes(o ...run.StepOption) []*run.Definition {
	task := func(name string, f func(context.Context, any) (any, error), more ...run.StepOption) run.Step {
		return run.Task(name, f, append(slices.Clone(o), more...)...)
	}
	echo := func(_ context.Context, in any) (any, error) { return in, nil }
	say := func(name string, more ...run.StepOption) run.Step {
		return task(name, func(context.Context, any) (any, error) { return name, nil }, more...)
	}
	patch := func(name string, merge any) run.Step {
		return task(name, func(ctx context.Context, _ any) (any, error) { return nil, run.Patch(ctx, merge) })
	}
	var long []run.Step
	for i := range 40 {
		long = append(long, say(fmt.Sprint("s", i)))
	}
	var large []run.Step
	for i := range 5 {
		large = append(large, task(fmt.Sprint("l", i), func(context.Context, any) (any, error) { return strings.Repeat(fmt.Sprint(i), 100_000), nil }))
	}
	return []*run.Definition{
		run.Define("three", "1", say("a"), say("b"), say("c")),
		run.Define("long", "1", long...),
		run.Define("large", "1", large...),
		run.Define("fed", "1", say("a"), task("b", echo, run.Input("=steps.a.output")), patch("c", map[string]int{"n": 1}), patch("d", map[string]any{"m": "<ä>", "n": nil}),
			task("e", echo, run.Input(map[string]string{"a": "=steps.a.output", "b": "=steps.b.output", "m": "=state.m"}))),
		run.Define("loop", "1", say("a"), task("turn", func(ctx context.Context, _ any) (any, error) {
			info, _ := run.Of(ctx)
			return info.Visit, nil
		}), say("b"), run.If("again", "steps.turn.output < 4", "a", ""), say("c")),
		run.Define("mixed", "1", say("a"), say("b"),
			run.Task("plain", echo, run.Idempotent()), say("c"), say("d"),
			run.Task("opaque", echo, run.Opaque()), say("e"), run.Wait("nap", time.Millisecond), say("f"), say("g")),
		run.Define("effects", "1", say("a"), task("charge", func(ctx context.Context, _ any) (any, error) {
			return holdfast.Effect(ctx, "charge", func(context.Context, string) (string, error) { return "ref", nil })
		}), say("b"), task("write", func(ctx context.Context, _ any) (any, error) {
			info, _ := run.Of(ctx)
			return nil, run.WriteTx(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				_, err := stream.Append(ctx, tx, "wrote-"+info.Run, stream.None, stream.Event{Name: "wrote"})
				return err
			})
		}), say("c")),
		run.Define("fails", "1", say("a"), say("b"), task("no", func(context.Context, any) (any, error) {
			return nil, holdfast.NonRetryable(errors.New("no"))
		}, run.OnFailure("mend")), say("skipped"), say("mend"), say("c")),
		run.Define("fails for good", "1", say("a"), task("no", func(context.Context, any) (any, error) {
			panic("no")
		}, run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 1})), say("b")),
		run.Define("unstorable", "1", say("a"), task("b", func(context.Context, any) (any, error) { return "\x00", nil }, run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 1})), say("c")),
	}
}

// TestWhatIsRecordedBehindIsRecordedAsAnythingElse verifies that runs whose steps are recorded behind leave the same
// runs, steps and histories as others, and that a reaction sees the same events, whenever the records are sent.
func TestWhatIsRecordedBehindIsRecordedAsAnythingElse(t *testing.T) {
	for name, where := range storetest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			delays := []time.Duration{atOnce, 2 * time.Millisecond, never}
			i := testlevel.Rand(t).IntN(len(delays))
			want := recordedRuns(t, where(t), time.Second, shapes(run.Idempotent()))
			for _, delay := range testlevel.Pick(delays[i:i+1], delays, delays) {
				got := recordedRuns(t, where(t), delay, shapes(run.Idempotent(), run.RecordBehind()))
				for i := range max(len(want), len(got)) {
					if i >= len(want) || i >= len(got) || got[i] != want[i] {
						t.Fatalf("with a delay of %s, behind:\n  %s\nwant:\n  %s", delay, slices.Concat(got, make([]string, len(want)))[i], slices.Concat(want, make([]string, len(got)))[i])
					}
				}
			}
		})
	}
}

var runID = regexp.MustCompile(`run_[0-9a-f]{32}`)

// recordedRuns does a run of each definition, and returns how they are stored, and what a reaction saw.
func recordedRuns(t *testing.T, db string, delay time.Duration, defs []*run.Definition) (lines []string) {
	t.Helper()
	var mu sync.Mutex
	seen := make(map[string][]string)
	all := []holdfast.Part{run.RecordDelay(delay), stream.React("watch", stream.Select{Events: []string{"stepStarted"}, Source: stream.Histories, Pattern: `^\$run/`}, func(_ context.Context, d *stream.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		seen[d.Stream] = append(seen[d.Stream], fmt.Sprintf("saw %d %s %s", d.Version, d.Name, d.Data))
		return nil
	}, stream.Options{})}
	for _, d := range defs {
		all = append(all, d)
	}
	e := holdfasttest.OpenOn(t, holdfasttest.At(db), all...)
	testkit.Run(t, e)
	if r, _, err := defs[0].Start(t.Context(), e, 0); err != nil { // it may start before the engine runs
		t.Fatal(err)
	} else {
		awaitStatus(t, e, r.ID, "COMPLETED")
	}
	line := func(what ...any) { lines = append(lines, runID.ReplaceAllString(fmt.Sprint(what...), "RUN")) }
	for _, d := range defs {
		r, _, err := d.Start(t.Context(), e, map[string]int{"n": 1})
		if err == nil {
			r, err = run.Await(t.Context(), e, r.ID)
		}
		if err != nil || !r.Over() {
			t.Fatalf("%s: %+v, %v", d.ID(), r, err)
		}
		stored, err := run.Get(t.Context(), e, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []run.Run{r, stored} {
			line(d.ID(), " ", r.Status, r.Version, " at ", r.Step, " ", string(r.State), string(r.Output), r.Error)
		}
		for s, err := range run.ListSteps(t.Context(), e, r.ID) {
			if err != nil || s.StartedAt.IsZero() || s.FinishedAt.Before(s.StartedAt) {
				t.Fatalf("step %+v, %v", s, err)
			}
			line(d.ID(), " ", s.Name, s.Visit, s.Operation, s.Type, s.Status, s.Attempts, s.Uncertain, string(s.Input), len(s.Output), string(s.Output[:min(len(s.Output), 40)]), s.Error)
		}
		var last stream.Event
		started := 0
		for x, err := range stream.Read(t.Context(), e, "$run/"+r.ID, 0) {
			if err != nil || x.At.Before(last.At) {
				t.Fatalf("event %+v after %+v, %v", x, last, err)
			}
			if last = x; x.Name == "stepStarted" {
				started++
			}
			line(d.ID(), " ", x.Version, x.Name, string(x.Data))
		}
		testkit.Eventually(t, "the reaction has seen every start of a step", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(seen["$run/"+r.ID]) >= started
		})
		mu.Lock()
		line(d.ID(), " ", strings.Join(seen["$run/"+r.ID], "\n"))
		mu.Unlock()
	}
	return lines
}

// TestARunRecordedBehindCostsItsStartAndOneRecord verifies that a run of quick steps that are recorded behind is two
// transactions, and that a long one is recorded in parts.
func TestARunRecordedBehindCostsItsStartAndOneRecord(t *testing.T) {
	defs := shapes(run.Idempotent(), run.RecordBehind())
	for name, where := range storetest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &counting{Database: store.DatabaseOf(holdfasttest.At(where(t))), wrote: make(map[string]int)}
			e := holdfasttest.OpenOn(t, store.HandleDatabase(db), defs[0], defs[1], run.RecordDelay(never))
			testkit.Run(t, e)
			for _, c := range []struct {
				def     *run.Definition
				records int
			}{{defs[0], 1}, {defs[1], 3}} { // forty steps are 16, 16 and 8
				for i := range 3 {
					db.taken()
					r, _, err := c.def.Start(t.Context(), e, 1)
					if err != nil {
						t.Fatal(err)
					}
					awaitStatus(t, e, r.ID, "COMPLETED")
					wrote := db.taken()
					if i > 0 && (wrote["runs.start_at_step"] != 1 || wrote["runs.finish_steps"] != c.records || len(wrote) != 2) { // the first may start before the engine runs
						t.Errorf("a run of %s wrote %v", c.def.ID(), wrote)
					}
				}
			}
		})
	}
}

// bodies counts the bodies of steps, by name.
type bodies struct {
	mu    sync.Mutex
	count map[string]int
}

func (b *bodies) add(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count == nil {
		b.count = make(map[string]int)
	}
	b.count[name]++
	return b.count[name]
}

func (b *bodies) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprint(b.count)
}

// step is a step that is recorded behind. It counts its body, and then does what f says.
func (b *bodies) step(name string, f func(ctx context.Context, n int) error) run.Step {
	return run.Task(name, func(ctx context.Context, _ any) (string, error) {
		n := b.add(name)
		if f != nil {
			return name, f(ctx, n)
		}
		return name, nil
	}, run.Idempotent(), run.RecordBehind())
}

// TestBodiesBeginWhileARecordIsInFlight verifies that the next bodies begin while the record of a step is held up, but
// no more than the limit; and that an effect, a write, an opaque step and the end of the run wait for it.
func TestBodiesBeginWhileARecordIsInFlight(t *testing.T) {
	for name, where := range storetest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var released atomic.Bool // everything is recorded from here on
			begun := make(chan string, 100)
			early := func(what string) error {
				if !released.Load() {
					return holdfast.NonRetryable(fmt.Errorf("%s came before the record", what))
				}
				return nil
			}
			step := func(name string, f func(context.Context) error) run.Step {
				return run.Task(name, func(ctx context.Context, _ any) (string, error) {
					begun <- name
					if f == nil {
						return name, nil
					}
					return name, f(ctx)
				}, run.Idempotent(), run.RecordBehind())
			}
			var long []run.Step
			for i := range 40 {
				long = append(long, step(fmt.Sprint(i), nil))
			}
			for i, c := range []struct {
				def  *run.Definition
				upTo []string
			}{
				{run.Define("end", "1", step("a", nil), step("b", nil), step("c", nil)), []string{"a", "b", "c"}},
				{run.Define("effect", "1", step("a", nil), step("b", nil), step("c", func(ctx context.Context) error {
					_, err := holdfast.Effect(ctx, "x", func(context.Context, string) (int, error) { return 1, early("an effect") })
					return err
				}), step("d", nil)), []string{"a", "b", "c"}},
				{run.Define("write", "1", step("a", nil), step("b", nil), step("c", func(ctx context.Context) error {
					return run.WriteTx(ctx, func(context.Context, holdfast.Tx) error { return early("a write") })
				}), step("d", nil)), []string{"a", "b", "c"}},
				{run.Define("opaque", "1", step("a", nil), step("b", nil), run.Task("c", func(context.Context, any) (int, error) { return 1, early("an opaque step") }, run.Opaque())), []string{"a", "b"}},
				{run.Define("other", "1", step("a", nil), step("b", nil), run.Task("c", func(context.Context, any) (int, error) { return 1, early("another step") }, run.Idempotent())), []string{"a", "b"}},
				{run.Define("long", "1", long...), []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"}},
			} {
				records, held := make(chan struct{}, 100), make(chan struct{})
				release := sync.OnceFunc(func() { close(held) })
				released.Store(false)
				db := &counting{Database: store.DatabaseOf(holdfasttest.At(where(t))), wrote: make(map[string]int), writing: func(cmd store.Command) {
					if strings.HasPrefix(cmd.Decl().Name, "runs.finish_step") {
						records <- struct{}{}
						<-held
					}
				}}
				delay := []time.Duration{atOnce, time.Millisecond}[i%2]
				e := holdfasttest.OpenOn(t, store.HandleDatabase(db), c.def, run.RecordDelay(delay))
				stop := testkit.Run(t, e)
				t.Cleanup(release)
				r, _, err := c.def.Start(t.Context(), e, 1)
				if err != nil {
					t.Fatal(err)
				}
				for _, want := range c.upTo {
					if got := <-begun; got != want {
						t.Fatalf("%s: body %s began, want %s", c.def.ID(), got, want)
					}
				}
				<-records
				if now, err := run.Get(t.Context(), e, r.ID); err != nil || now.Version != 1 || now.Step != c.upTo[0] {
					t.Errorf("%s: the run is at version %d, step %s, before anything is recorded: %v", c.def.ID(), now.Version, now.Step, err)
				}
				select {
				case name := <-begun:
					t.Fatalf("%s: body %s began before the record", c.def.ID(), name)
				default:
				}
				released.Store(true)
				release()
				awaitStatus(t, e, r.ID, "COMPLETED")
				stop()
				for len(begun) > 0 {
					<-begun
				}
			}
		})
	}
}

// TestCommandsAndSignalsWhileStepsAreBehind verifies what a pause, a cancel or a signal does to a run some of whose steps
// are done but not recorded: what the run had recorded counts, what the command came before runs again or never, and a
// signal changes nothing. The body in flight is told to stop.
func TestCommandsAndSignalsWhileStepsAreBehind(t *testing.T) {
	eachAt(t, func(t *testing.T, _ *holdfast.Engine, at string) {
		for _, delay := range []time.Duration{atOnce, never} {
			for _, command := range []string{"pause", "cancel", "signal", "pause and resume"} {
				var b bodies
				var e *holdfast.Engine
				commanded := make(chan struct{}) // a record comes after the command
				db := &counting{Database: store.DatabaseOf(holdfasttest.At(at)), wrote: make(map[string]int), writing: func(c store.Command) {
					if strings.HasPrefix(c.Decl().Name, "runs.finish_step") {
						<-commanded
					}
				}}
				def := run.Define(strings.ReplaceAll(command, " ", "-")+fmt.Sprint(delay == never), "1", b.step("a", nil), b.step("b", func(ctx context.Context, n int) error {
					if n > 1 {
						return nil
					}
					info, _ := run.Of(ctx)
					var err error
					switch command {
					case "pause":
						_, err = run.Pause(ctx, e, info.Run)
					case "cancel":
						_, err = run.Cancel(ctx, e, info.Run)
					case "signal":
						err = run.Send(ctx, e, info.Run, "news", 1)
					default:
						if _, err = run.Pause(ctx, e, info.Run); err == nil {
							_, err = run.Resume(ctx, e, info.Run)
						}
					}
					close(commanded)
					if stops := command == "cancel" || command == "pause" && delay != never; err == nil && stops {
						<-ctx.Done() // by the record that is refused, or by the cancel
						if cause := context.Cause(ctx); command == "pause" && !strings.Contains(cause.Error(), "paused") {
							t.Errorf("the body was stopped because %v", cause)
						}
					} else if err == nil {
						err = ctx.Err()
					}
					return err
				}), b.step("c", nil), b.step("d", nil))
				e = holdfasttest.OpenOn(t, store.HandleDatabase(db), def, run.RecordDelay(delay))
				stop := testkit.Run(t, e)
				r, _, err := def.Start(t.Context(), e, 1)
				if err != nil {
					t.Fatal(err)
				}
				want, steps := "map[a:1 b:1 c:1 d:1]", "a COMPLETED 1, b COMPLETED 1, c COMPLETED 1, d COMPLETED 1"
				switch command {
				case "pause":
					stepOf(t, e, r.ID, func(s runengine.Step) bool { return s.Name == "a" && s.Status == runengine.Completed })
					if r, err := run.Get(t.Context(), e, r.ID); err != nil || r.Status != run.Paused {
						t.Fatalf("got run %s, %v, want PAUSED", r.Status, err)
					}
					if _, err := run.Resume(t.Context(), e, r.ID); err != nil {
						t.Fatal(err)
					}
					awaitStatus(t, e, r.ID, "COMPLETED")
					if want = "map[a:1 b:2 c:1 d:1]"; delay == never { // nothing was sent before the end
						want = "map[a:1 b:2 c:2 d:2]"
					}
				case "cancel":
					awaitStatus(t, e, r.ID, "CANCELLED")
					want, steps = "map[a:1 b:1]", "a COMPLETED 1"
				default:
					awaitStatus(t, e, r.ID, "COMPLETED")
				}
				stop()
				if got := b.String(); got != want {
					t.Errorf("%s, delay %s: bodies %s, want %s", command, delay, got, want)
				}
				if got := stepsOf(t, e, r.ID); got != steps {
					t.Errorf("%s, delay %s: steps %s, want %s", command, delay, got, steps)
				}
			}
		}
	})
}

// stepsOf returns the steps of a run with their statuses and attempts.
func stepsOf(t *testing.T, e *holdfast.Engine, id string) string {
	t.Helper()
	var all []string
	for s, err := range run.ListSteps(t.Context(), e, id) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(s.Name, " ", s.Status, " ", s.Attempts))
	}
	return strings.Join(all, ", ")
}

// TestAHolderThatIsBehindLosesItsLease verifies that a node whose lease has expired while it was behind records nothing
// of what it did: another node has done the run from the last record on.
func TestAHolderThatIsBehindLosesItsLease(t *testing.T) {
	eachAt(t, func(t *testing.T, _ *holdfast.Engine, at string) {
		var mine, others bodies
		inBody, goOn := make(chan struct{}), make(chan struct{})
		def := func(b *bodies, c func(context.Context, int) error) *run.Definition {
			return run.Define("lost", "1", b.step("a", nil), b.step("b", nil), b.step("c", c), b.step("d", nil))
		}
		first := def(&mine, func(context.Context, int) error { close(inBody); <-goOn; return nil })
		e := holdfasttest.OpenOn(t, holdfasttest.At(at), first, run.RecordDelay(never))
		r, _, err := first.Start(t.Context(), e, 1)
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		done.Go(func() {
			if _, err := run.WorkerOf(e).Step(t.Context(), store.Partition{}); err != nil {
				t.Error(err)
			}
		})
		<-inBody
		expire(t, e)
		second := def(&others, nil)
		other := holdfasttest.OpenOn(t, holdfasttest.At(at), second)
		stop := testkit.Run(t, other)
		awaitStatus(t, other, r.ID, "COMPLETED")
		stop()
		was := history(t, e, r.ID)
		close(goOn)
		done.Wait()
		if now := history(t, e, r.ID); now != was {
			t.Errorf("the late holder wrote:\n%s\nafter\n%s", now, was)
		}
		if got := mine.String() + others.String(); got != "map[a:1 b:1 c:1 d:1]map[a:1 b:1 c:1 d:1]" {
			t.Errorf("got bodies %s", got)
		}
		if got := stepsOf(t, e, r.ID); got != "a COMPLETED 2, b COMPLETED 1, c COMPLETED 1, d COMPLETED 1" {
			t.Errorf("got steps %s", got)
		}
	})
}

func history(t *testing.T, e *holdfast.Engine, id string) string {
	t.Helper()
	var all []string
	for x, err := range stream.Read(t.Context(), e, "$run/"+id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(x.Version, x.Name, string(x.Data)))
	}
	return strings.Join(all, "\n")
}

// TestTheLeaseIsRenewedWhileStepsAreBehind verifies that the lease of the last recorded step is renewed while later
// bodies run, that a record which passes the lease on is not taken for its loss, and that no crash is counted.
func TestTheLeaseIsRenewedWhileStepsAreBehind(t *testing.T) {
	for name, where := range storetest.Databases(t) {
		for _, delay := range []time.Duration{2 * time.Millisecond, never} {
			t.Run(fmt.Sprint(name, delay), func(t *testing.T) {
				t.Parallel()
				renewals := make(chan struct{}, 1000)
				var b bodies
				var all []run.Step
				for i := range 6 {
					all = append(all, b.step(fmt.Sprint("s", i), func(ctx context.Context, _ int) error {
						for i%2 == 1 && len(renewals) > 0 { // one that begins from here on
							<-renewals
						}
						if i%2 == 1 {
							<-renewals
							<-renewals
						}
						return ctx.Err()
					}))
				}
				def := run.Define("renewed", "1", all...)
				db := &counting{Database: store.DatabaseOf(holdfasttest.At(where(t))), wrote: make(map[string]int), reading: func(c store.Command) {
					if c.Decl().Name == "runs.renew" {
						renewals <- struct{}{}
					}
				}}
				e := holdfasttest.OpenOn(t, store.HandleDatabase(db), def, run.RecordDelay(delay), run.Lease(3*time.Second))
				testkit.Run(t, e)
				r, _, err := def.Start(t.Context(), e, 1)
				if err != nil {
					t.Fatal(err)
				}
				awaitStatus(t, e, r.ID, "COMPLETED")
				for s, err := range run.ListSteps(t.Context(), e, r.ID) {
					if err != nil || s.Attempts != 1 || s.Error != "" {
						t.Errorf("step %+v, %v", s, err)
					}
				}
			})
		}
	}
}

// TestARecordThatPassesTheLeaseOnIsNotItsLoss verifies that a body continues if the lease is renewed after a record has
// ended the step that had it, and before the result of the record is known.
func TestARecordThatPassesTheLeaseOnIsNotItsLoss(t *testing.T) {
	for name, where := range storetest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bodies
			var first sync.Once
			recorded, renewed, known := make(chan struct{}), make(chan struct{}), make(chan struct{})
			def := run.Define("passed", "1", b.step("a", nil), b.step("b", func(ctx context.Context, _ int) error {
				<-known
				return ctx.Err()
			}), b.step("c", nil))
			var renewals atomic.Int64
			db := &counting{Database: store.DatabaseOf(holdfasttest.At(where(t))), wrote: make(map[string]int), done: func(c store.Command) {
				switch c.Decl().Name {
				case "runs.finish_step":
					first.Do(func() {
						close(recorded)
						<-renewed
					})
				case "runs.renew":
					select {
					case <-recorded: // a renewal of the step that is over, and then one of the next
						switch renewals.Add(1) {
						case 1:
							close(renewed)
						case 2:
							close(known)
						}
					default:
					}
				}
			}}
			e := holdfasttest.OpenOn(t, store.HandleDatabase(db), def, run.RecordDelay(atOnce), run.Lease(3*time.Second))
			testkit.Run(t, e)
			r, _, err := def.Start(t.Context(), e, 1)
			if err != nil {
				t.Fatal(err)
			}
			awaitStatus(t, e, r.ID, "COMPLETED")
			if got := b.String() + stepsOf(t, e, r.ID); got != "map[a:1 b:1 c:1]a COMPLETED 1, b COMPLETED 1, c COMPLETED 1" {
				t.Errorf("got %s", got)
			}
		})
	}
}

// Verifies that runs whose steps are recorded behind come to their end whatever crashes at whatever point, and that what
// was recorded as completed does not run again: the output of a step is the number of its body, and stays as it was
// first read.
func TestCrashOfARunRecordedBehind(t *testing.T) {
	type ledger struct {
		mu    sync.Mutex
		calls map[string]int
		known map[string]string // outputs that were read, by workspace and step
	}
	w := ledger{calls: make(map[string]int), known: make(map[string]string)}
	step := func(name string, more ...run.StepOption) run.Step {
		return run.Task(name, func(ctx context.Context, _ any) (int, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			key := store.WorkspaceOf(ctx) + "/" + name
			w.calls[key]++
			if w.known[key] != "" {
				return 0, holdfast.NonRetryable(fmt.Errorf("step %s ran again after its output was recorded as %s", name, w.known[key]))
			}
			return w.calls[key], nil
		}, append(more, run.Idempotent(), run.RecordBehind())...)
	}
	read := func(ctx context.Context, e *holdfast.Engine, id string) error {
		for s, err := range run.ListSteps(ctx, e, id) {
			if err != nil {
				return err
			}
			if s.Status != run.StepCompleted {
				continue
			}
			w.mu.Lock()
			key := store.WorkspaceOf(ctx) + "/" + s.Name
			was := w.known[key]
			w.known[key] = string(s.Output)
			w.mu.Unlock()
			if was != "" && was != string(s.Output) {
				return fmt.Errorf("the output of step %s was %s, and is %s", s.Name, was, s.Output)
			}
		}
		return nil
	}
	var long []run.Step
	for i := range 20 { // two records
		long = append(long, step(fmt.Sprint("s", i)))
	}
	for name, def := range map[string]*run.Definition{
		"three": run.Define("three", "1", step("a"), step("b"), step("c")),
		"long":  run.Define("long", "1", long...),
		"mixed": run.Define("mixed", "1", step("a"), step("b"), run.Task("x", func(context.Context, any) (int, error) { return 1, nil }, run.Idempotent()), step("c"), step("d"),
			run.Wait("nap", time.Minute), step("e"), step("f", run.Input("=steps.e.output"))),
	} {
		holdfasttest.Crash(t, holdfasttest.Scenario{Name: name, Pairs: true,
			Parts: func() []holdfast.Part { return []holdfast.Part{def, run.RecordDelay(never)} },
			Do: func(ctx context.Context, e *holdfast.Engine) error {
				r, _, err := def.Start(ctx, e, 1, run.Key("k"))
				if err != nil {
					return err
				}
				if err := read(ctx, e, r.ID); err != nil {
					return err
				}
				_, err = holdfasttest.Settle(ctx, e)
				return err
			},
			Recover: func(context.Context, *holdfast.Engine) error { return nil }, // what is recorded is read before it continues
			Check: func(ctx context.Context, e *holdfast.Engine) error {
				r, created, err := def.Start(ctx, e, 1, run.Key("k"))
				if err != nil || created || r.Status != run.Completed {
					return fmt.Errorf("got run %s (%s), created again: %v, %w", r.Status, r.Error, created, err)
				}
				return read(ctx, e, r.ID)
			}})
	}
}

// TestAKilledProcessThatWasBehind verifies that after a SIGKILL at any time every run comes to its end, that no body of a
// step that was recorded runs again, and that at most sixteen bodies of a run do.
func TestAKilledProcessThatWasBehind(t *testing.T) {
	eachAt(t, func(t *testing.T, e *holdfast.Engine, db string) {
		random := testlevel.Rand(t)
		for range testlevel.Pick(2, 10, 40) {
			killBehind(t, e, db, random)
		}
	})
}

// behindSteps is the number of steps of the definition behind.
const behindSteps = 24

// behindDef is a definition whose bodies report that they have begun.
func behindDef(begun func(string)) *run.Definition {
	var all []run.Step
	for i := range behindSteps {
		all = append(all, run.Task(fmt.Sprint("s", i), func(ctx context.Context, _ any) (int, error) {
			info, _ := run.Of(ctx)
			begun(fmt.Sprintf("body %s %s", info.Run, info.Step))
			return i, nil
		}, run.Idempotent(), run.RecordBehind()))
	}
	return run.Define("behind", "1", all...)
}

// newSessions returns a function that reports whether all sessions that begin from now on have ended: a server may still
// execute what a killed process has sent. Sessions for notifications do not count, because they write nothing, and the
// engine of the test opens one when it first sends some.
func newSessions(t *testing.T, db string) (gone func() bool) {
	t.Helper()
	if !strings.HasPrefix(db, "postgres") {
		return func() bool { return true }
	}
	conn, err := pgx.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	var from time.Time
	if err := conn.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&from); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		var n int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND backend_start > $1 AND query NOT LIKE '%pg_notify%'`, from).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 0
	}
}

func killBehind(t *testing.T, e *holdfast.Engine, db string, random *rand.Rand) {
	t.Helper()
	def := behindDef(nil)
	var ids []string
	for range 4 {
		r, _, err := def.Start(t.Context(), e, 1)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	kill := func(node *testkit.Child, ran map[string]int) {
		node.Signal(syscall.SIGKILL)
		for line := range node.Lines() { // what it had printed
			ran[strings.TrimPrefix(line, "body ")]++
		}
	}
	before, after := make(map[string]int), make(map[string]int)
	gone := newSessions(t, db)
	first := testkit.StartChild(t, "TestNodeProcess", nodeVar, db)
	first.Send("work")
	for range 1 + random.IntN(len(ids)*behindSteps-1) {
		before[first.ExpectPrefix("body ")]++
	}
	kill(first, before)
	testkit.Eventually(t, "the server has ended the sessions of the killed process", gone)
	recorded := make(map[string]bool)
	for _, id := range ids {
		for s, err := range run.ListSteps(t.Context(), e, id) {
			if err != nil {
				t.Fatal(err)
			}
			if s.Status == run.StepCompleted {
				recorded[id+" "+s.Name] = true
			}
		}
	}
	expire(t, e)
	second := testkit.StartChild(t, "TestNodeProcess", nodeVar, db)
	second.Send("work")
	for _, id := range ids {
		awaitStatus(t, e, id, "COMPLETED")
	}
	kill(second, after)
	for _, id := range ids {
		again := 0
		for i := range behindSteps {
			step := fmt.Sprintf("%s s%d", id, i)
			switch {
			case recorded[step] && after[step] > 0:
				t.Errorf("%s ran again after it was recorded", step)
			case before[step] > 1 || after[step] > 1 || before[step]+after[step] == 0:
				t.Errorf("%s ran %d times before the kill and %d times after", step, before[step], after[step])
			case before[step]+after[step] == 2:
				again++
			}
		}
		if again > 17 { // sixteen that were behind, and the one in flight
			t.Errorf("%d steps of run %s ran again, want at most 17", again, id)
		}
	}
}

// Verifies that what cannot be recorded behind is refused.
func TestRecordBehindIsRefused(t *testing.T) {
	body := func(context.Context, any) (int, error) { return 1, nil }
	parsed := func() *run.Definition {
		return run.MustParse([]byte(`{"name": "parsed", "version": "1", "steps": [{"name": "a", "type": "task", "handler": "h"}]}`))
	}
	for name, def := range map[string]*run.Definition{
		"without a safety":    run.Define("a", "1", run.Task("a", body, run.RecordBehind())),
		"with another safety": run.Define("b", "1", run.Task("a", body, run.RecordBehind(), run.Journaled())),
		"a remote step":       run.Define("c", "1", run.Remote("a", "h", run.RecordBehind(), run.Idempotent())),
		"a call":              run.Define("d", "1", run.Call("a", "GET", "http://x", run.RecordBehind(), run.Idempotent())),
		"a handler":           run.Handle(parsed(), "h", body, run.RecordBehind()),
	} {
		if err := def.Register(t.Context(), nil); fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), "RecordBehind") {
			t.Errorf("%s: got %v, want a validation error", name, err)
		}
	}
	with, without := run.Define("e", "1", run.Task("a", body, run.Idempotent(), run.RecordBehind())), run.Define("e", "1", run.Task("a", body, run.Idempotent()))
	if !json.Valid(with.JSON()) || string(with.JSON()) != string(without.JSON()) {
		t.Errorf("RecordBehind is stored in the definition: %s", with.JSON())
	}
	storetest.Each(t, func(t *testing.T, _ *holdfast.Engine) {
		def := run.Handle(parsed(), "h", body, run.RecordBehind(), run.Idempotent())
		e := holdfasttest.Open(t, def)
		testkit.Run(t, e)
		r, _, err := def.Start(t.Context(), e, 1)
		if err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, r.ID, "COMPLETED")
	})
}

// TestEachRecordHasTheTimeOfALease verifies that a record that follows another without a pause is not limited by the time
// that the other one began: a run whose records follow each other for longer than a lease is not taken for crashed.
func TestEachRecordHasTheTimeOfALease(t *testing.T) {
	var b bodies
	begun, third := make(chan struct{}), make(chan struct{})
	def := run.Define("steady", "1", b.step("a", nil), b.step("b", func(context.Context, int) error { <-begun; return nil }), b.step("c", func(_ context.Context, _ int) error { close(third); return nil }), b.step("d", nil))
	var first sync.Once
	db := &counting{Database: store.DatabaseOf(holdfasttest.At(holdfasttest.SQLite(t))), wrote: make(map[string]int), writing: func(c store.Command) {
		if strings.HasPrefix(c.Decl().Name, "runs.finish_step") {
			first.Do(func() { close(begun); <-third }) // the end of b waits, so the next record is of the same flight
		}
	}}
	e := holdfasttest.OpenOn(t, store.HandleDatabase(db), def, run.RecordDelay(atOnce))
	testkit.Run(t, e)
	r, _, err := def.Start(t.Context(), e, 1)
	if err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, e, r.ID, "COMPLETED")
	var deadlines []time.Time
	for _, at := range db.deadlines {
		if strings.HasPrefix(at.name, "runs.finish_step") {
			deadlines = append(deadlines, at.time)
		}
	}
	if len(deadlines) < 2 || !deadlines[1].After(deadlines[0]) {
		t.Errorf("got the deadlines %v, want later ones for later records", deadlines)
	}
}

// TestARenewalThatIsOvertakenByARecordIsNotALoss verifies that a renewal that is sent before a record, and arrives after
// it, does not stop the body: the record has passed the lease on.
func TestARenewalThatIsOvertakenByARecordIsNotALoss(t *testing.T) {
	for name, where := range storetest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bodies
			var sent, recorded, answered sync.Once
			renewing, committed, renewed, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
			def := run.Define("overtaken", "1", b.step("a", nil), b.step("b", func(ctx context.Context, n int) error {
				if n > 1 {
					return nil
				}
				context.AfterFunc(ctx, func() { close(stopped) })
				<-renewing
				_, err := holdfast.Effect(ctx, "x", func(context.Context, string) (int, error) { return 1, nil })
				return errors.Join(err, ctx.Err())
			}), b.step("c", nil))
			db := &counting{Database: store.DatabaseOf(holdfasttest.At(where(t))), wrote: make(map[string]int),
				reading: func(c store.Command) {
					if c.Decl().Name == "runs.renew" {
						sent.Do(func() { close(renewing); <-committed })
					}
				},
				done: func(c store.Command) {
					switch c.Decl().Name {
					case "runs.finish_step":
						recorded.Do(func() {
							close(committed)
							<-renewed
							select { // the renewal is handled before the result of the record is known
							case <-stopped:
							case <-time.After(50 * time.Millisecond):
							}
						})
					case "runs.renew":
						answered.Do(func() { close(renewed) })
					}
				}}
			e := holdfasttest.OpenOn(t, store.HandleDatabase(db), def, run.RecordDelay(never), run.Lease(3*time.Second))
			testkit.Run(t, e)
			r, _, err := def.Start(t.Context(), e, 1)
			if err != nil {
				t.Fatal(err)
			}
			awaitStatus(t, e, r.ID, "COMPLETED")
			if got := b.String() + stepsOf(t, e, r.ID); got != "map[a:1 b:1 c:1]a COMPLETED 1, b COMPLETED 1, c COMPLETED 1" {
				t.Errorf("got %s", got)
			}
		})
	}
}
