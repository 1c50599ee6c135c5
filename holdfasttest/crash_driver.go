package holdfasttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// crashDriver runs a scenario on one kind of database.
type crashDriver struct {
	t *testing.T
	s Scenario
	// create makes a database for one [crashWorker].
	create func(t testing.TB, setup func(where string)) holdfast.Database
	pairs  bool
	slow   bool         // cases take long
	told   atomic.Int64 // when progress was last reported
}

// open makes a database for one worker and prepares it.
func (d *crashDriver) open(t testing.TB) holdfast.Database {
	return d.create(t, func(where string) {
		if d.s.Setup == nil {
			return
		}
		ctx, cancel := bounded(context.Background())
		defer cancel()
		if err := d.s.Setup(ctx, where); err != nil {
			t.Fatalf("setup: %v", err)
		}
	})
}

// tellEvery is the interval at which progress is reported.
const tellEvery = 10 * time.Second

// tell reports the progress, unless it was reported a moment ago.
func (d *crashDriver) tell(done, all int) {
	now, last := clock.OfMachine().UnixNano(), d.told.Load()
	if last == 0 {
		d.told.CompareAndSwap(0, now)
	} else if now-last >= tellEvery.Nanoseconds() && d.told.CompareAndSwap(last, now) {
		d.t.Logf("%d of %d cases", done, all)
	}
}

// errUnreached means that a scenario ended before all faults of a case had struck.
var errUnreached = errors.New("the scenario ended before it reached all faults")

// crashResult is the result of a case.
type crashResult struct {
	workspace string
	strikes   []crash.Strike
	points    []crash.Point
	err       error
}

// after returns the number of points that reliably follow the last fault.
func (r crashResult) after() int {
	for i, p := range slices.Backward(r.points) {
		if p.Fault != crash.None {
			return len(waitedOnce(r.points[i+1:]))
		}
	}
	return 0
}

// run counts the points and then runs the cases with a fault at each of them.
func (d *crashDriver) run() {
	d.t.Helper()
	first := d.worker(slog.DiscardHandler)
	points := d.count(first)
	workers := []*crashWorker{first}
	// Pick has a value for each level: test, check and crash.
	for len(workers) < testlevel.Pick(1, runtime.GOMAXPROCS(0), runtime.GOMAXPROCS(0)) {
		workers = append(workers, d.worker(slog.DiscardHandler))
	}
	begun := clock.Now()
	single := singles(len(points))
	calls, others := split(single, points)
	if d.slow { // on SQLite, all of them run
		calls = d.sample(calls, testlevel.Pick(5, 0, 0))
	}
	one := d.cases(workers, append(calls, d.sample(others, d.mostSingles())...))
	all := one
	if d.pairs {
		for _, w := range workers {
			w.keep = true
		}
		all = append(all, d.cases(workers, d.sample(pairs(one), testlevel.Pick(testlevel.Share(3), 12, 0)))...)
	}
	d.report(all)
	took := clock.Since(begun)
	d.t.Attr(testlevel.CasesAttr, strconv.Itoa(len(all)))
	d.t.Logf("%d points, %d of %d single faults and %d pairs in %s: %.0f cases/s, seed %d",
		len(points), len(one), len(single), len(all)-len(one), took.Round(time.Millisecond), float64(len(all))/took.Seconds(), testlevel.Seed())
}

// split separates the cases whose fault strikes at a call of the [World], which are all run on SQLite: there are few
// of them, and it is there that a handler is wrong.
func split(all [][]crash.Strike, points []crash.Point) (calls, others [][]crash.Strike) {
	for _, one := range all {
		if points[one[0].At-1].IsCall() {
			calls = append(calls, one)
		} else {
			others = append(others, one)
		}
	}
	return calls, others
}

// mostSingles returns how many cases with one fault are sampled; 0 means all. A case on PostgreSQL takes several times as
// long as on SQLite.
func (d *crashDriver) mostSingles() int {
	if d.slow {
		return testlevel.Pick(testlevel.Share(3), 12, 0)
	}
	return testlevel.Pick(testlevel.Share(10), 0, 0)
}

// sample returns at most that many cases, chosen by the seed: one from each section of the scenario. This finds more
// than the same number of cases that may be adjacent.
func (d *crashDriver) sample(all [][]crash.Strike, most int) (few [][]crash.Strike) {
	if most == 0 || len(all) <= most {
		return all
	}
	random := testlevel.Rand(d.t)
	for i := range most {
		from, to := i*len(all)/most, (i+1)*len(all)/most
		few = append(few, all[from+random.IntN(to-from)])
	}
	return few
}

func (d *crashDriver) worker(log slog.Handler) *crashWorker {
	d.t.Helper()
	w := newCrashWorker(d.s, d.open(d.t), slog.New(log))
	d.t.Cleanup(func() {
		if err := w.close(); err != nil {
			d.t.Error(err)
		}
	})
	return w
}

// count runs the scenario twice without a fault: the points must be the same.
func (d *crashDriver) count(w *crashWorker) []crash.Point {
	d.t.Helper()
	results := []crashResult{w.run(nil), w.run(nil)}
	d.audit(w, results)
	first, again := results[0], results[1]
	for _, r := range results {
		if r.err != nil {
			d.t.Fatalf("without any fault: %v%s", r.err, trace(r.points))
		}
	}
	if len(again.points) < len(first.points) {
		first, again = again, first
	}
	if !slices.EqualFunc(waitedOnce(first.points), waitedOnce(again.points), func(a, b crash.Point) bool { return a.Name == b.Name }) {
		d.t.Fatalf("the scenario does not pass the same points in every run, so they cannot be numbered:%s\nand then:%s", trace(first.points), trace(again.points))
	}
	if len(first.points) == 0 {
		d.t.Fatal("the scenario makes no call to the engine")
	}
	return first.points
}

// waitedOnce removes repeated rounds of waiting. A registration waits for the end of the transactions in flight in
// its database, also for that of a session that is being opened, so the number of rounds varies.
func waitedOnce(points []crash.Point) []crash.Point {
	points = slices.Clone(points)
	for i := 0; i < len(points); {
		n := rounds[points[i].Name]
		if n > 0 && i+2*n <= len(points) && slices.Equal(points[i:i+n], points[i+n:i+2*n]) {
			points = slices.Delete(points, i+n, i+2*n)
		} else {
			i++
		}
	}
	return points
}

// rounds maps the first point of a round of waiting to the number of points in it.
var rounds = map[string]int{"do reactions.record_open_transactions": 2, "do lifecycles.list_open_transactions": 1}

// fewCases is the number of cases for which one database is used: statements on an entire shard take longer with each
// workspace in it.
const fewCases = 2000

// cases runs cases on all workers and returns their results in order.
func (d *crashDriver) cases(workers []*crashWorker, all [][]crash.Strike) []crashResult {
	d.t.Helper()
	results := make([]crashResult, len(all))
	for from := 0; from < len(all); from += fewCases * len(workers) {
		to := min(from+fewCases*len(workers), len(all))
		if from > 0 {
			for _, w := range workers {
				if err := w.move(d.open(d.t)); err != nil {
					d.t.Fatal(err)
				}
			}
		}
		d.some(workers, all[from:to], results[from:to])
	}
	return results
}

// some runs cases on all workers and checks the resulting databases against the invariants.
func (d *crashDriver) some(workers []*crashWorker, all [][]crash.Strike, results []crashResult) {
	d.t.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	for _, w := range workers {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				results[i] = w.runAlone(all[i])
				d.tell(int(i), len(all))
				for try := 0; try < 3 && len(all[i]) > 1 && errors.Is(results[i].err, errUnreached) && results[i].after() > 0; try++ {
					// After the first fault the scenario was done sooner than in the case that the pair was made from,
					// which had waited longer: the second fault strikes at the last point instead.
					pair := slices.Clone(all[i])
					pair[len(pair)-1].At = results[i].after()
					results[i] = w.runAlone(pair)
				}
			}
		})
	}
	group.Wait()
	for _, w := range workers {
		d.audit(w, results)
	}
}

// audit assigns each violated invariant to the case that caused it.
func (d *crashDriver) audit(w *crashWorker, results []crashResult) {
	d.t.Helper()
	broken, err := w.audit()
	if err != nil {
		d.t.Errorf("check: %v", err)
	}
	for i, r := range results {
		if err := broken[r.workspace]; err != nil && r.err == nil {
			results[i].err = err
		}
	}
}

// shownFailures is the number of failed cases that are reported in full.
const shownFailures = 3

func (d *crashDriver) report(all []crashResult) {
	d.t.Helper()
	failed := slices.DeleteFunc(slices.Clone(all), func(r crashResult) bool { return r.err == nil })
	for _, r := range failed[:min(len(failed), shownFailures)] {
		d.fail(r)
	}
	if more := len(failed) - shownFailures; more > 0 {
		d.t.Errorf("%d more of %d cases failed", more, len(all))
	}
}

func (d *crashDriver) fail(r crashResult) {
	d.t.Helper()
	d.t.Errorf("case %s: %v%s\nreplay: %s", crash.Format(r.strikes), r.err, trace(r.points), d.command(r.strikes))
}

// trace formats points for a reader, numbered as the faults of a case count them.
func trace(points []crash.Point) string {
	var b strings.Builder
	n := 0
	for _, p := range points {
		n++
		fmt.Fprintf(&b, "\n  %3d  %s", n, p.Name)
		if p.Key != "" {
			fmt.Fprintf(&b, " %s", p.Key)
		}
		if p.Fault != crash.None {
			fmt.Fprintf(&b, "  <- %s", p.Fault)
			n = 0
		}
	}
	return b.String()
}

// command returns the command that replays a case.
func (d *crashDriver) command(strikes []crash.Strike) string {
	pkg := "."
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" {
		pkg = strings.TrimSuffix(info.Path, ".test")
	}
	parts := strings.Split(d.t.Name(), "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return fmt.Sprintf("%s=%s go test -count=1 %s -run %s",
		caseVar, shellQuote(crash.Format(strikes)), pkg, shellQuote(strings.Join(parts, "/")))
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// replay runs a single case and prints the engine's log.
func (d *crashDriver) replay(text string) {
	d.t.Helper()
	strikes, err := crash.Parse(text)
	if err != nil {
		d.t.Fatalf("%s: %v", caseVar, err)
	}
	w := d.worker(slog.NewTextHandler(d.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := d.cases([]*crashWorker{w}, [][]crash.Strike{strikes})[0]
	if r.err != nil {
		d.fail(r)
		return
	}
	d.t.Logf("case %s passed:%s", text, trace(r.points))
}

// crashTime limits a call of the scenario. No call waits, so a call that takes longer is stuck.
const crashTime = time.Minute

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, crashTime)
}
