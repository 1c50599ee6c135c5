package postgres_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
)

// call is a verb with its arguments, as one caller uses it. Its result is compared as JSON.
type call func(context.Context, *holdfast.Engine) (any, error)

// scene creates a state, and returns the calls that can be made in it. A call may be made any
// number of times, each time in the same state.
type scene func(*testing.T, context.Context, *holdfast.Engine) map[string]call

// runsOut is the step in which every lease expires; back undoes it, for a W that decided before.
const (
	runsOut = "the lease runs out"
	back    = "back in time"
)

// TestTheGate verifies that a call that had to wait leaves the same rows, and returns the same
// result, as if the calls had been made one after the other.
//
// Of two calls V and W, V's statement waits at a gate: its snapshot is taken, and it has locked
// nothing. W is made and committed meanwhile, and the gate is opened. Results and tables must then
// be those of V;W or of W;V. This is done for each statement of V that locks or writes, in each of
// its forms.
//
// The test repeats this with W's transaction open, while V is made until it ends or waits, with and
// without all leases expiring before V. Here W decided in time, and V must find what W did.
func TestTheGate(t *testing.T) {
	var reached sync.Map
	var left atomic.Int64 // calls that were not tested
	left.Store(int64(len(scenes)))
	t.Run("scenes", func(t *testing.T) {
		for name, s := range scenes {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testlevel.Variant(t, 12)
				left.Add(newGatehouse(t, s, &reached).all() - 1)
			})
		}
	})
	if left.Load() == 0 { // neither the level nor -run has left some out
		verdicts(t).gated(t, &reached)
	}
}

// gatehouse is a scene on a database, with an engine for each of two callers.
type gatehouse struct {
	t       *testing.T
	ctx     context.Context
	conn    *pgx.Conn
	a, b    *caller // the callers of V and of W
	calls   map[string]call
	names   []string
	dump    string
	begin   time.Time
	reached *sync.Map
	serial  map[string]outcome
	counts  map[string]int
	last    call   // made at the end of every order, or nil
	jump    string // how far the time moves for leases to expire
}

func newGatehouse(t *testing.T, s scene, reached *sync.Map) *gatehouse {
	url := holdfasttest.PostgreSQL(t)
	g := &gatehouse{t: t, ctx: t.Context(), reached: reached, serial: make(map[string]outcome), counts: make(map[string]int), jump: "2 h"}
	for _, long := range []string{"scope", "request", "desk"} { // their leases last longer
		if strings.Contains(t.Name(), long) {
			g.jump = "30 d"
		}
	}
	var err error
	g.conn, err = pgx.Connect(g.ctx, url)
	g.ok(err)
	t.Cleanup(func() { g.conn.Close(context.Background()) })
	g.exec(postgres.GateSQL)
	g.a, g.b = newCaller(t, url), newCaller(t, url)
	g.calls = s(t, g.ctx, g.a.engine)
	g.calls[runsOut] = func(ctx context.Context, e *holdfast.Engine) (any, error) {
		by, err := time.ParseDuration(strings.NewReplacer(" h", "h", "30 d", "720h").Replace(g.jump))
		if err != nil {
			return nil, err
		}
		return nil, shift(ctx, e, by)
	}
	if last, ok := g.calls["last"]; ok {
		g.last = last
		delete(g.calls, "last")
	}
	g.names = slices.Sorted(maps.Keys(g.calls))
	g.keep()
	return g
}

func (g *gatehouse) ok(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *gatehouse) exec(text string) {
	g.t.Helper()
	_, err := g.conn.Exec(g.ctx, text)
	g.ok(err)
}

// keep stores the scene: its rows and its time.
func (g *gatehouse) keep() {
	var tables []string
	g.ok(g.conn.QueryRow(g.ctx, `SELECT array_agg(relname::text ORDER BY relname) FROM pg_class
		WHERE relnamespace = 'holdfast'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname NOT IN ('migration', 'clock', 'refusal', 'audit')`).Scan(&tables))
	g.ok(g.conn.QueryRow(g.ctx, `SELECT gate.now()`).Scan(&g.begin))
	var reset, dump []string
	for _, table := range tables {
		g.exec(fmt.Sprintf(`CREATE TABLE gate.%s AS SELECT * FROM holdfast.%[1]s`, table))
		reset = append(reset, `DELETE FROM holdfast.`+table)
		dump = append(dump, fmt.Sprintf(`SELECT '%s ' || to_jsonb(x)::text FROM holdfast.%[1]s x`, table))
		var some bool
		if g.ok(g.conn.QueryRow(g.ctx, `SELECT EXISTS (SELECT FROM gate.`+table+`)`).Scan(&some)); some {
			reset = append(reset, fmt.Sprintf(`INSERT INTO holdfast.%s SELECT * FROM gate.%[1]s`, table))
		}
	}
	// The registry revision that an engine has cached must not match by chance.
	reset = append(reset, `UPDATE gate.registry SET revision = revision + 1000`,
		fmt.Sprintf(`UPDATE holdfast.clock SET shift = '%s'::timestamptz - clock_timestamp()`, g.begin.Format(time.RFC3339Nano)))
	g.exec("CREATE FUNCTION gate.reset() RETURNS void LANGUAGE plpgsql AS $$ BEGIN\n" + strings.Join(reset, ";\n") + ";\nEND $$")
	g.dump = strings.Join(dump, "\nUNION ALL ")
}

// all tests every pair, and returns how many calls -run has left out.
func (g *gatehouse) all() (left int64) {
	for _, v := range g.names {
		if v == runsOut {
			continue
		}
		left++
		g.t.Run(v, func(t *testing.T) {
			left--
			testlevel.Variant(t, 2)
			mine := *g
			mine.t = t
			mine.each(v, testlevel.Rand(t).IntN)
		})
	}
	return left
}

// each tests one call beside the others.
func (g *gatehouse) each(v string, intn func(int) int) {
	for _, s := range g.statements(v) {
		if apart[s] != "" { // it waits for nobody, and reads nothing that could be old
			continue
		}
		for _, form := range g.a.gate.Forms(s) {
			for _, w := range g.some(intn) {
				g.gated(v, w, s, form)
			}
		}
	}
	for _, w := range g.some(intn) {
		if w == runsOut {
			continue
		}
		for n := range g.commits(w) {
			for _, late := range expiries(intn) {
				g.held(v, w, n, late)
			}
		}
	}
}

// expiries returns whether the leases expire: one of the two, and both at level crash.
func expiries(intn func(int) int) []bool {
	return testlevel.Pick([]bool{intn(2) == 0}, []bool{intn(2) == 0}, []bool{false, true})
}

// some returns the calls to pair one with: at level test a few of them.
func (g *gatehouse) some(intn func(int) int) []string {
	most := testlevel.Pick(1, 1, len(g.names))
	names := slices.Clone(g.names)
	for i := range names {
		j := i + intn(len(names)-i)
		names[i], names[j] = names[j], names[i]
	}
	return names[:min(most, len(names))]
}

// statements returns the statements of a call, each once.
func (g *gatehouse) statements(name string) []string {
	g.exec(`SELECT gate.reset()`)
	g.a.made = nil
	g.a.do(g.ctx, g.calls[name])
	slices.Sort(g.a.made)
	return slices.Compact(g.a.made)
}

// commits returns how often a call commits its writes.
func (g *gatehouse) commits(name string) int {
	n, ok := g.counts[name]
	if !ok {
		g.exec(`SELECT gate.reset()`)
		g.b.commits = 0
		g.b.do(g.ctx, g.calls[name])
		n = g.b.commits
		g.counts[name] = n
	}
	return n
}

// outcome are the results of two calls, and the rows that they left.
type outcome struct{ v, w, left string }

var offsets = regexp.MustCompile(`\+-?\d+h[0-9hms.]*|\+0s`)

// timeless returns the outcome without times.
func (o outcome) timeless() outcome { return o.without(offsets) }

// without returns the outcome without the matches of x.
func (o outcome) without(x *regexp.Regexp) outcome {
	rows := strings.Split(x.ReplaceAllString(o.left, ""), "\n")
	slices.Sort(rows)
	return outcome{x.ReplaceAllString(o.v, ""), x.ReplaceAllString(o.w, ""), strings.Join(rows, "\n")}
}

// vague are the parts of an outcome that are not compared for a call that skips locked streams. A
// lease on a skipped stream is not renewed, and its current expiry is returned. Of the streams of
// one holder, those that a sweep skips are released by the next sweep, as a group of their own.
var vague = map[string]*regexp.Regexp{
	"renew": regexp.MustCompile(`"[Uu]ntil": ?"[^"]*"`),
	"free":  regexp.MustCompile(`"(deaths|crash_group)": \d+`),
}

func (o outcome) String() string { return "V: " + o.v + "\nW: " + o.w + "\n" + o.left }

// play makes calls one after the other, and returns their outcome. A step is V, W, runsOut or back;
// "V:2" is V until it has committed twice, and V then is the rest of it: a call that commits
// several times is several.
func (g *gatehouse) play(v, w string, order []string) outcome {
	key := strings.Join(append(slices.Clone(order), v, w), "/")
	if o, ok := g.serial[key]; ok {
		return o
	}
	g.exec(`SELECT gate.reset()`)
	var o outcome
	for _, step := range order {
		switch who, n, _ := strings.Cut(step, ":"); who {
		case "V":
			o.v = g.a.until(g.ctx, g.calls[v], n)
		case "W":
			o.w = g.b.until(g.ctx, g.calls[w], n)
		case runsOut:
			g.exec("UPDATE holdfast.clock SET shift = shift + interval '" + g.jump + "'")
		case back:
			g.exec("UPDATE holdfast.clock SET shift = shift - interval '" + g.jump + "'")
		}
	}
	o = g.plain(g.again(v, w, o))
	g.serial[key] = o
	return o
}

// orders returns the orders in which V and W may be made, with each of their commits atomic.
func (g *gatehouse) orders(v, w string) [][]string {
	all := [][]string{{"V", "W"}, {"W", "V"}}
	for i := range g.commits(v) {
		all = append(all, []string{fmt.Sprint("V:", i+1), "W", "V"})
	}
	for i := range g.commits(w) {
		all = append(all, []string{fmt.Sprint("W:", i+1), "V", "W"})
		for j := range g.parts(v) {
			all = append(all, []string{fmt.Sprint("W:", i+1), fmt.Sprint("V:", j+1), "W", "V"}, []string{fmt.Sprint("V:", j+1), fmt.Sprint("W:", i+1), "V", "W"})
		}
	}
	return all
}

// parts returns how often a call may commit: a sweep may find more by then.
func (g *gatehouse) parts(name string) int {
	if n := g.commits(name); !isPeriodic(name) || n > 3 {
		return n
	}
	return 3
}

// lateOrders returns the orders in which W may have made its first n commits and one more before
// the leases expired, and V was made then. A sweep may also find that it came too early.
func (g *gatehouse) lateOrders(v, w string, n int) [][]string {
	some, more := fmt.Sprint("W:", n), fmt.Sprint("W:", n+1)
	all := [][]string{
		{some, more, runsOut, "V", "W"},
		{some, more, runsOut, "W", "V"},
		{some, runsOut, "V", back, more, runsOut, "W"},
		{some, "V", more, runsOut, "W"},
		{some, more, "V", runsOut, "W"},
	}
	for i := range g.parts(v) {
		part := fmt.Sprint("V:", i+1)
		all = append(all, []string{some, more, runsOut, part, "W", "V"}, []string{some, runsOut, part, back, more, runsOut, "V", "W"})
	}
	return all
}

var (
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	ids   = regexp.MustCompile(`[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}|\b[0-9a-v]{26}\b`)
	turns = regexp.MustCompile(`"(revision|retryInMs|RetryAfter)": ?\d+`)
	ready = regexp.MustCompile(`"state": "(?:waiting|live)", "waits": (?:null|\[[^\]]*\])`) // any transaction in flight is waited for
	going = regexp.MustCompile(`^reaction .*"state": "removed", "waits": \[`)
	large = regexp.MustCompile(`\b\d{10,}\b`)
)

// plain returns an outcome with the current tables, without values that differ between runs: times
// are in tens of minutes since the scene began, and ids are left out.
func (g *gatehouse) plain(o outcome) outcome {
	if g.last != nil {
		g.b.do(g.ctx, g.last)
	}
	rows, err := g.conn.Query(g.ctx, g.dump)
	g.ok(err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	g.ok(err)
	tell := func(s string) string {
		s = times.ReplaceAllStringFunc(s, func(s string) string {
			at, err := time.Parse(time.RFC3339Nano, s)
			g.ok(err)
			return "+" + at.Sub(g.begin).Round(10*time.Minute).String()
		})
		s = ids.ReplaceAllString(s, "ID")
		s = large.ReplaceAllStringFunc(s, func(s string) string { // it contains the registry's revision, or a time
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil || n%(1<<32) > 1000 {
				return "many"
			}
			return fmt.Sprint("many+", n%(1<<32))
		})
		return ready.ReplaceAllString(turns.ReplaceAllString(s, "$1"), "ready")
	}
	all = slices.DeleteFunc(all, going.MatchString)
	for i := range all {
		all[i] = tell(all[i])
	}
	slices.Sort(all)
	return outcome{tell(o.v), tell(o.w), strings.Join(all, "\n")}
}

// gated makes V's statement wait at the gate, while W is made.
func (g *gatehouse) gated(v, w, statement, form string) {
	g.exec(`SELECT gate.reset()`)
	g.a.gate.Arm(statement, form)
	g.exec(`SELECT pg_advisory_lock(22)`)
	doneV := g.a.start(g.ctx, g.calls[v])
	waits := g.until(1, doneV)
	doneW := g.b.start(g.ctx, g.calls[w])
	g.until(2, doneW) // it waits for V, if V has locked something in earlier statements
	g.exec(`SELECT pg_advisory_unlock(22)`)
	o := outcome{v: <-doneV, w: <-doneW}
	g.a.gate.Arm("", "")
	o = g.plain(g.again(v, w, o))
	if waits {
		g.reached.Store(statement+"."+form, true)
	}
	g.judge(fmt.Sprintf("V = %s, at %s.%s; W = %s", v, statement, form, w), v, w, o, g.orders(v, w))
}

// held makes V while W has not committed yet; the leases may expire between the two.
func (g *gatehouse) held(v, w string, n int, late bool) {
	g.exec(`SELECT gate.reset()`)
	stop := g.b.holdAt(n)
	doneW := g.b.start(g.ctx, g.calls[w])
	select {
	case <-stop.at:
	case o := <-doneW:
		doneW <- o
	}
	if late {
		g.exec("UPDATE holdfast.clock SET shift = shift + interval '" + g.jump + "'")
	}
	doneV := g.a.start(g.ctx, g.calls[v])
	g.until(1, doneV)
	close(stop.on)
	o := outcome{v: <-doneV, w: <-doneW}
	g.b.hold = nil
	o = g.plain(g.again(v, w, o))
	orders := g.orders(v, w)
	if late {
		orders = g.lateOrders(v, w, n)
	}
	g.judge(fmt.Sprintf("V = %s; W = %s, open at its commit %d; leases run out between: %v", v, w, n, late), v, w, o, orders)
}

// until waits until n sessions wait for a lock, and returns true, or until a call is done.
func (g *gatehouse) until(n int, done chan string) bool {
	for {
		select {
		case o := <-done:
			done <- o
			return false
		default:
		}
		var waiting int
		g.ok(g.conn.QueryRow(g.ctx, `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
			WHERE NOT l.granted AND a.datname = current_database()`).Scan(&waiting))
		if waiting >= n {
			return true
		}
		g.ok(clock.Wait(g.ctx, 200*time.Microsecond))
	}
}

// judge requires an outcome to be that of one of the orders. If W is the time itself, V may write
// some of it before and some after.
func (g *gatehouse) judge(what, v, w string, got outcome, orders [][]string) {
	g.t.Helper()
	leave := func(o outcome) outcome { return o }
	if w == runsOut {
		leave = outcome.timeless
	} else if x := vague[v]; x != nil && strings.Contains(g.t.Name(), "/stream_") {
		leave = func(o outcome) outcome { return o.without(x) }
	}
	got = leave(got)
	var nearest, name string
	for _, order := range orders {
		want := leave(g.play(v, w, order))
		if got == want {
			return
		}
		if d := differ(want.String(), got.String()); nearest == "" || len(d) < len(nearest) {
			nearest, name = d, strings.Join(order, "; ")
		}
	}
	if g.known(v, w) != "" {
		return
	}
	g.t.Errorf("%s: the outcome matches no serial order; it differs from %s by\n%s", what, name, nearest)
}

// again makes V and W once more, if they are repeated calls, or if their result was to retry.
func (g *gatehouse) again(v, w string, o outcome) outcome {
	if isPeriodic(w) {
		g.b.do(g.ctx, g.calls[w])
		o.w = ""
	}
	switch {
	case isPeriodic(v):
		g.a.do(g.ctx, g.calls[v])
		o.v = ""
	case strings.Contains(o.v, `"Busy":true`):
		o.v = g.a.do(g.ctx, g.calls[v])
	}
	return o
}

// isPeriodic reports whether a call is repeated regularly: a row that is locked or changes meanwhile is
// left for the next time.
func isPeriodic(name string) bool {
	return slices.Contains([]string{"take", "dirty", "gather", "free", "sweep", "expire", "look", "tick", "recover", "sequence", "finish",
		"snapshot", "resume all", "prune", "prune histories", "prune tokens"}, name)
}

// known returns why an outcome of no order is expected of two calls.
func (g *gatehouse) known(v, w string) string {
	if strings.Contains(g.t.Name(), "batch") && (v == "take" && slices.Contains([]string{"expire", "fail", "release"}, w) || v == "finalize" && w == "settle") {
		return "an item that came into its state meanwhile is left, as if it had come later; only the numbers of the events tell"
	}
	if strings.HasPrefix(w, "end charge") && slices.Contains([]string{"fail for good", "cancel"}, v) {
		return "decision 022, open: it waits for a person although all is known by now"
	}
	if v == "prune" && (strings.HasPrefix(w, "fail") || strings.HasPrefix(w, "complete")) {
		return "an end that is told again looks twice; where the run is removed between, it is told to be late"
	}
	if v == "finish" && w == "take" || v == "take" && w == "free" {
		return "a stream that a registration finds, or a sweep frees, a moment later is left for the next take"
	}
	if v == "rebuild" && w == "remove" {
		return "it looked whether there is such a reaction, and found no stream of it afterwards"
	}
	if v == "remove" && strings.HasPrefix(w, "enlist") {
		return "to register it anew waits for the removal, which waits at the gate"
	}
	if v == "free" && w == "reset" {
		return "of what is to be reset, some is freed before and some is reset while it is freed; only the epochs tell"
	}
	if v == "ack some" && w == "block" {
		return "what was busy is recorded again, and here what was recorded with it"
	}
	if v == "take otherwise" && strings.HasPrefix(w, "take") {
		return "a request that came in a moment ago is under way: the other is told to try again, also where the first began long ago"
	}
	others := func(name string) bool { return strings.HasPrefix(name, "append") || name == "finish" || name == "free" }
	if v == "enlist others" && others(w) || w == "enlist others" && others(v) {
		return "decision 022, open: a stream by the old pattern stays"
	}
	return ""
}

// differ returns the lines that only one of two texts has.
func differ(want, got string) string {
	var text strings.Builder
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for _, x := range []struct {
		sign     string
		in, from []string
	}{{"- ", b, a}, {"+ ", a, b}} {
		for _, line := range x.from {
			if !slices.Contains(x.in, line) {
				text.WriteString(x.sign + line + "\n")
			}
		}
	}
	return text.String()
}
