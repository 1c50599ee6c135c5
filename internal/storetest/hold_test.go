package storetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/tasks"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
)

const racersOfOne = 16 // goroutines of each of four processes

// raceForHolds is a worker process: for each queue that it reads, its racers all
// try to take the one task in it, and it prints how many did.
func raceForHolds(ctx context.Context, db holdfast.Database, name string) error {
	if strings.HasSuffix(name, "early") {
		clock.Skew(-time.Hour)
	}
	if strings.HasSuffix(name, "late") {
		clock.Skew(time.Hour)
	}
	hf, err := holdfast.Open(ctx, db, holdfast.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer hf.Close()
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		won, err := raceOnce(ctx, hf, in.Text(), name)
		if err != nil {
			return err
		}
		fmt.Println(won)
	}
	return in.Err()
}

func raceOnce(ctx context.Context, hf *holdfast.Engine, queue, name string) (won int, err error) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range racersOfOne {
		group.Go(func() {
			got, e := tasks.Take(ctx, hf, tasks.TakeArgs{Queues: []string{queue}, Holder: fmt.Sprint(name, i), Lease: time.Minute, Limit: 1})
			if e == nil && len(got) == 1 { // the winner settles at once: a second winner would show in the history
				_, e = tasks.Settle(ctx, hf, got[0], []byte(`"`+name+`"`))
			}
			mu.Lock()
			defer mu.Unlock()
			won += len(got)
			if e != nil {
				err = e
			}
		})
	}
	group.Wait()
	return won, err
}

// TestHoldRace verifies that of 64 racers for one hold, from four processes, one
// takes it, many times over; on PostgreSQL with the clocks of two of the
// processes an hour off, one early and one late.
func TestHoldRace(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); holdRace(t, "sqlite:"+holdfasttest.SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); holdRace(t, holdfasttest.PostgreSQL(t)) })
}

func holdRace(t *testing.T, db string) {
	hf := holdfasttest.OpenOn(t, database(db))
	var racers []*talker
	for _, name := range []string{"a", "b", "c-early", "d-late"} {
		racers = append(racers, talkTo(t, process("racer", db, name)))
	}
	for _, r := range racers {
		r.expect("ready")
	}
	for round := range testlevel.Pick(20, 300, 5000) {
		queue := fmt.Sprintf("round-%d", round)
		if _, _, err := tasks.Add(context.Background(), hf, tasks.AddArgs{Queue: queue, ID: "t"}); err != nil {
			t.Fatal(err)
		}
		for _, r := range racers {
			r.say(queue)
		}
		won := 0
		for _, r := range racers {
			var n int
			fmt.Sscan(r.hear(), &n)
			won += n
		}
		if won != 1 {
			t.Fatalf("round %d: %d of 64 took the hold", round, won)
		}
	}
	checkRounds(t, hf)
}

func checkRounds(t *testing.T, hf *holdfast.Engine) {
	for round := range testlevel.Pick(20, 300, 5000) {
		all, err := stream.Read(context.Background(), hf, tasks.Stream(fmt.Sprintf("round-%d", round), "t"), 0, 0)
		if err != nil || len(all) != 2 || all[1].Name != "settled" {
			t.Fatalf("round %d: history %v, %v", round, all, err)
		}
	}
}

// talker is a process that is spoken to line by line.
type talker struct {
	*testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func talkTo(t *testing.T, cmd *exec.Cmd) *talker {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &talker{t, cmd, in, bufio.NewScanner(out)}
}

func (p *talker) say(line string) {
	p.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.Fatalf("the process does not listen: %v", err)
	}
}

func (p *talker) hear() string {
	p.Helper()
	if !p.out.Scan() {
		p.Fatalf("the process fell silent: %v", p.out.Err())
	}
	return p.out.Text()
}

func (p *talker) expect(want string) {
	p.Helper()
	if got := p.hear(); got != want {
		p.Fatalf("the process said %q, want %q", got, want)
	}
}

// holdOnCommand is a worker process that takes a task, and then does to it what
// it is told, and prints the code of what it gets.
func holdOnCommand(ctx context.Context, db holdfast.Database, name string) error {
	hf, err := holdfast.Open(ctx, db, holdfast.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer hf.Close()
	got, err := tasks.Take(ctx, hf, tasks.TakeArgs{Queues: []string{"q"}, Holder: name, Lease: time.Minute, Limit: 1})
	if err != nil || len(got) != 1 {
		return fmt.Errorf("took %d: %w", len(got), err)
	}
	fmt.Println("holding")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var err error
		switch in.Text() {
		case "renew":
			_, err = tasks.Renew(ctx, hf, got[0], time.Minute)
		case "settle":
			_, err = tasks.Settle(ctx, hf, got[0], []byte(`"`+name+`"`))
		case "fail":
			_, err = tasks.Fail(ctx, hf, got[0], "late", 0, 9)
		case "release":
			_, err = tasks.Release(ctx, hf, got[0], 0)
		}
		fmt.Println(code(err))
	}
	return in.Err()
}

func code(err error) string {
	if err == nil {
		return "ok"
	}
	return string(fault.CodeOf(err))
}

// TestStoppedHolderCanWriteNothing verifies that a process that holds a task and
// is stopped (SIGSTOP) past the end of its hold can, when it goes on, neither
// renew, settle, fail nor release it: not while nobody has the task, not while
// another holds it, and not after the other has settled it.
func TestStoppedHolderCanWriteNothing(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); stoppedHolder(t, "sqlite:"+holdfasttest.SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); stoppedHolder(t, holdfasttest.PostgreSQL(t)) })
}

func stoppedHolder(t *testing.T, db string) {
	ctx := context.Background()
	hf := holdfasttest.OpenOn(t, database(db))
	addTask(t, hf, "t")
	old := talkTo(t, process("holder", db, "old"))
	old.expect("holding")
	old.say("renew")
	old.expect("ok")
	late := func() {
		t.Helper()
		for _, what := range []string{"renew", "settle", "fail", "release"} {
			old.say(what)
			old.expect("LEASE_LOST")
		}
	}
	stop(t, old.cmd)
	holdfasttest.Advance(t, hf, time.Hour)
	resume(t, old.cmd)
	late() // it ran out, and nobody has it

	if freed, err := tasks.Sweep(ctx, hf, 0, 5); err != nil || freed != 1 {
		t.Fatalf("freed %d, %v", freed, err)
	}
	late() // it was freed

	next := talkTo(t, process("holder", db, "next"))
	next.expect("holding")
	late() // another has it
	next.say("settle")
	next.expect("ok")
	late() // it is settled
	got, err := tasks.Get(ctx, hf, "q", "t")
	if err != nil || got.State != "done" || string(got.Output) != `"next"` || got.Deaths != 1 || got.Epoch != 2 {
		t.Errorf("the task is %+v, %v", got, err)
	}
}

func addTask(t *testing.T, hf *holdfast.Engine, id string) {
	t.Helper()
	if _, _, err := tasks.Add(context.Background(), hf, tasks.AddArgs{Queue: "q", ID: id}); err != nil {
		t.Fatal(err)
	}
}

func stop(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

func resume(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// TestKillerTaskIsGivenUp verifies that a task whose worker is killed (SIGKILL)
// each time ends as dead when as many workers have died as may, and that others
// in its queue are not held up.
func TestKillerTaskIsGivenUp(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); killerTask(t, "sqlite:"+holdfasttest.SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); killerTask(t, holdfasttest.PostgreSQL(t)) })
}

func killerTask(t *testing.T, db string) {
	ctx := context.Background()
	hf := holdfasttest.OpenOn(t, database(db))
	addTask(t, hf, "killer")
	for death := range 5 {
		victim := talkTo(t, process("holder", db, fmt.Sprint("victim", death)))
		victim.expect("holding")
		if err := victim.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		holdfasttest.Advance(t, hf, 2*time.Minute)
		if freed, err := tasks.Sweep(ctx, hf, 0, 5); err != nil || freed != 1 {
			t.Fatalf("death %d: freed %d, %v", death, freed, err)
		}
	}
	got, err := tasks.Get(ctx, hf, "q", "killer")
	if err != nil || got.State != "dead" || got.Deaths != 5 || got.Failures != 0 {
		t.Errorf("the task is %+v, %v", got, err)
	}
	addTask(t, hf, "other")
	talkTo(t, process("holder", db, "other")).expect("holding")
}

// TestHolderThatWaitedPastItsEndHasLost verifies, on PostgreSQL, that the time is
// looked at after the row was had: a settle, a renewal and a release whose
// statement was sent in time, but waited for the row until the hold had run out,
// are refused, also where whoever had the row changed nothing.
func TestHolderThatWaitedPastItsEndHasLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, what := range []string{"renew", "settle", "release"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := holdfasttest.PostgreSQL(t)
			hf := holdfasttest.OpenOn(t, database(url))
			addTask(t, hf, what)
			got, err := tasks.Take(ctx, hf, tasks.TakeArgs{Queues: []string{"q"}, Holder: "h", Lease: 3 * time.Second, Limit: 1})
			if err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			user, err := pgx.Connect(ctx, url)
			if err != nil {
				t.Fatal(err)
			}
			defer user.Close(ctx)
			watch, err := pgx.Connect(ctx, url) // not in a transaction: there the server shows the same picture again
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close(ctx)
			tx, err := user.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(ctx)
			if _, err := tx.Exec(ctx, `SELECT FROM holdfast.task WHERE queue = 'q' AND id = $1 FOR UPDATE`, what); err != nil {
				t.Fatal(err)
			}
			answer := make(chan error, 1)
			go func() { answer <- endBy(ctx, hf, got[0], what) }()
			eventually(t, "the statement waits for the row", func() bool { return waiting(t, watch) })
			eventually(t, "the hold runs out", func() bool {
				s, err := hf.Status(ctx)
				return err == nil && s.Now.After(got[0].Until)
			})
			if err := tx.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-answer; fault.CodeOf(err) != fault.LeaseLost {
				t.Errorf("%s was answered %v", what, err)
			}
		})
	}
}

func endBy(ctx context.Context, hf *holdfast.Engine, t tasks.Taken, what string) (err error) {
	switch what {
	case "renew":
		_, err = tasks.Renew(ctx, hf, t, time.Minute)
	case "settle":
		_, err = tasks.Settle(ctx, hf, t, nil)
	default:
		_, err = tasks.Release(ctx, hf, t, 0)
	}
	return err
}

// waiting says whether some statement waits for a lock in this database.
func waiting(t *testing.T, watch *pgx.Conn) bool {
	var n int
	err := watch.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// eventually looks again and again until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for !so() {
		if clock.Wait(ctx, 5*time.Millisecond) != nil {
			t.Fatalf("it did not come about that %s", what)
		}
	}
}

// TestIdleNodeAsksSeldom verifies that an engine that runs, with a worker and
// nothing to do, asks PostgreSQL at most twice a second; a task added by another
// node is then begun, and the log tells how soon.
func TestIdleNodeAsksSeldom(t *testing.T) {
	testlevel.Long(t)
	url := holdfasttest.PostgreSQL(t)
	hf := holdfasttest.OpenOn(t, database(url))
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { _ = hf.Run(ctx) })
	begun := make(chan time.Time, 1)
	w := &tasks.Worker{Doer: hf, Hub: hf.Hub(), Log: slog.New(slog.DiscardHandler), Name: "w", Queues: []string{"q"},
		Body: func(context.Context, tasks.Taken) ([]byte, error) {
			begun <- clock.Now()
			return json.RawMessage(`1`), nil
		}}
	group.Go(func() { w.Run(ctx) })

	watch, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close(context.Background())
	if _, err := watch.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS pg_stat_statements`); err != nil {
		t.Fatal(err)
	}
	before := queries(t, watch)
	eventually(t, "the worker comes to rest", func() bool { return queries(t, watch) >= before+6 })
	start := clock.Now()
	before = queries(t, watch)
	eventually(t, "five seconds pass", func() bool { return clock.Since(start) > 5*time.Second })
	asked := queries(t, watch) - before
	t.Logf("%d queries in %s", asked, clock.Since(start).Round(time.Millisecond))
	if asked > 10 {
		t.Errorf("%d queries in five seconds, want at most two a second", asked)
	}

	other := holdfasttest.OpenOn(t, database(url))
	group.Go(func() { _ = other.Run(ctx) })
	added := clock.Now()
	addTask(t, other, "t")
	t.Logf("a task of another node was begun after %s", (<-begun).Sub(added).Round(time.Millisecond))
}

// queries counts what was asked in this database, but for the watcher's own.
func queries(t *testing.T, c *pgx.Conn) int { return calls(t, c, "") }

func calls(t *testing.T, c *pgx.Conn, like string) (n int) {
	t.Helper()
	err := c.QueryRow(context.Background(), `SELECT coalesce(sum(s.calls), 0)::int FROM pg_stat_statements s
		JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database()
		AND s.query NOT LIKE '%pg_stat_statements%' AND s.query LIKE '%' || $1 || '%'`, like).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
