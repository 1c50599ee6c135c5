package lifecycle_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// nodeVar names the database of a child process.
const nodeVar = "HOLDFAST_LIFECYCLE_NODE"

// TestNodeProcess is no test, but a program in a process of its own, which the tests
// below start, stop and kill. It executes the commands of its input and prints their outcomes.
func TestNodeProcess(t *testing.T) {
	db := os.Getenv(nodeVar)
	if db == "" {
		return // it is for child processes
	}
	if err := serveCommands(db); err != nil {
		fmt.Println("ended", err)
	}
	os.Exit(0)
}

// serveCommands executes commands from standard input, one per line: "fire step id n" fires a step n times
// concurrently; "go id" makes the body that works on an entity succeed, "fail id" fail.
func serveCommands(db string) error {
	var mu sync.Mutex
	told := map[string]chan string{}
	word := func(id string) chan string {
		mu.Lock()
		defer mu.Unlock()
		if told[id] == nil {
			told[id] = make(chan string, 64)
		}
		return told[id]
	}
	w := &world{db: db}
	l := lifecycle.MustParse[bill]([]byte(invoices))
	act := func(_ context.Context, a *lifecycle.Act[bill]) error {
		if a.Step == "note" {
			w.write(a, "node")
			return nil
		}
		fmt.Printf("body %s\n", a.Entity.ID)
		if <-word(a.Entity.ID) == "fail" {
			return errOwn
		}
		w.write(a, "node")
		return nil
	}
	l.Action("Act", act, lifecycle.Transactional()).Action("Brief", act, lifecycle.Timeout(time.Second))
	l.Validation("May", func(context.Context, *lifecycle.Act[bill]) error { return nil })
	e, err := holdfast.Open(context.Background(), databaseAt(db), holdfast.Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, l)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		f := strings.Fields(in.Text())
		switch f[0] {
		case "fire":
			var n int
			if _, err := fmt.Sscan(f[3], &n); err != nil {
				return err
			}
			start := make(chan struct{})
			for range n {
				go func() {
					<-start
					got, err := l.Fire(context.Background(), e, f[2], f[1], "admin", lifecycle.Lease(time.Minute))
					if err == nil {
						fmt.Printf("won %s %s %d\n", f[2], got.Status, got.Version)
						return
					}
					x := factsOf(err)
					fmt.Printf("lost %s %s %t %t\n", f[2], fault.CodeOf(err), x["holder"] != nil && x["since"] != nil && x["until"] != nil,
						errors.Is(err, holdfast.ErrLeaseLost))
				}()
			}
			close(start)
		case "go", "fail":
			word(f[1]) <- f[0]
		}
	}
	return nil
}

func startNode(t *testing.T, db string) *testkit.Child {
	t.Helper()
	return testkit.StartChild(t, "TestNodeProcess", nodeVar, db)
}

// Verifies that the claims of a process that was killed (SIGKILL) during its bodies last until their leases
// expire and are then reverted once each, although two janitors run at once; none of the bodies' writes are
// committed, and the next caller can claim.
func TestAKilledHolderIsRecoveredOnce(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w, other := newWorld(t, db, invoices), unopened(t, db, invoices)
		other.open()
		w.makeOut()
		all := ids("k", 8)
		w.create(all...)
		n := startNode(t, db)
		var bodies []string
		for i, id := range all {
			n.Send("fire %s %s 1", []string{"close", "try"}[i%2], id)
			bodies = append(bodies, "body "+id)
		}
		n.Expect(bodies...)
		n.Signal(syscall.SIGKILL)
		for range n.Lines() {
			t.Error("a killed process still prints")
		}
		w.advance(50 * time.Second)
		w.round()
		for _, id := range all {
			if got := w.get(id); got.Claimed == nil || got.Version != 1 {
				t.Errorf("%s is %+v before its lease expired, want it claimed", id, got)
			}
		}
		w.advance(11 * time.Second)
		holdfasttest.Race(t, 2, func(i int) error {
			[]*world{w, other}[i].round()
			return nil
		})
		for i, id := range all {
			w.happened(id, "open", "created", "claimed", "recovered")
			w.written(id)
			if got, err := w.fire(id, []string{"close", "try"}[i%2]); err != nil || got.Version != 4 {
				t.Errorf("the next caller got %+v, %v", got, err)
			}
		}
	})
}

// Verifies that a process that was stopped (SIGSTOP) past the end of its lease and continues (SIGCONT) can
// neither settle nor release: it gets LEASE_LOST, none of its writes are committed, and the next holder's
// claim survives and settles.
func TestAStoppedHolderWritesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w := newWorld(t, db, invoices)
		w.makeOut()
		for _, end := range []string{"go", "fail"} {
			id := "s-" + end
			w.create(id)
			n := startNode(t, db)
			n.Send("fire try %s 1", id)
			n.Expect("body " + id)
			storetest.Stop(t, w.e, n)
			w.advance(2 * time.Minute)
			w.round()
			w.free(id, "open")
			goOn, done := w.held(id, "close", func(_ context.Context, a *lifecycle.Act[bill]) error {
				w.write(a, "successor")
				return nil
			})
			n.Send("%s %s", end, id)
			n.Signal(syscall.SIGCONT)
			line := n.Next()
			if !strings.HasPrefix(line, "lost "+id) || !strings.HasSuffix(line, "true") {
				t.Errorf("the stopped process printed %q, want LEASE_LOST", line)
			}
			if got := w.get(id); got.Status != "closing" || got.Claimed == nil || got.Claimed.Epoch != 2 {
				t.Errorf("got claim %+v of the successor", got)
			}
			goOn <- nil
			if err := <-done; err != nil {
				t.Errorf("the successor got %v", err)
			}
			w.happened(id, "closed", "created", "claimed", "recovered", "claimed", "settled/close")
			w.written(id, "successor")
		}
	})
}
