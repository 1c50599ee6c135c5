package scope_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/scope"
)

// nodeVar names the variable that makes a test binary a node at a store.
const nodeVar = "HOLDFAST_SCOPE_NODE"

// ledger is what the processes change together.
type ledger struct {
	N     int64            `json:"n"`
	Items []string         `json:"items"`
	Done  map[string]int64 `json:"done"`
	Pad   string           `json:"pad,omitempty"`
}

// serveCommands is the main function of a child process: it executes commands, one per line.
func serveCommands(where string) error {
	ctx := context.Background()
	var ledgers func(string, ...scope.Option) scope.Scope[ledger]
	if folder, ok := strings.CutPrefix(where, "files:"); ok {
		files, err := scope.FileStore(folder)
		if err != nil {
			return err
		}
		ledgers = func(id string, o ...scope.Option) scope.Scope[ledger] {
			return scope.Of[ledger](files, "ledger", id, o...)
		}
	} else {
		hf, err := holdfast.Open(ctx, database(where), holdfast.Config{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		ledgers = func(id string, o ...scope.Option) scope.Scope[ledger] {
			return scope.In[ledger](hf, "ledger", id, o...)
		}
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var how, name string
		var n int
		if _, err := fmt.Sscan(in.Text(), &how, &name, &n); err != nil {
			return err
		}
		if how == "forever" {
			return writeForever(ctx, ledgers("l"), name)
		}
		for _, line := range changes(ctx, ledgers, how, name, n) {
			fmt.Println(line)
		}
		fmt.Println("end")
	}
	return nil
}

// callers is how many of a process change a scope at once.
const callers = 4

// changes changes a scope several times, and prints the outcome of each: "done", version
// and whether it was changed, or "lost" and the attempts.
func changes(ctx context.Context, ledgers func(string, ...scope.Option) scope.Scope[ledger], how, name string, n int) (lines []string) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for i := range n / callers {
				s, err := changed(ctx, ledgers, how, fmt.Sprintf("%s-%d-%d", name, c, i))
				line := fmt.Sprintf("done %d %t", s.Version, s.Changed)
				if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.Concurrency {
					line = fmt.Sprintf("lost %v", f.Fields["attempts"])
				} else if err != nil {
					line = "error " + err.Error()
				}
				mu.Lock()
				lines = append(lines, line)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return lines
}

func changed(ctx context.Context, ledgers func(string, ...scope.Option) scope.Scope[ledger], how, item string) (scope.Snapshot[ledger], error) {
	patient := scope.Budget(2 * time.Minute)
	add := func(_ context.Context, l ledger) (ledger, error) {
		l.N++
		return l, nil
	}
	switch how {
	case "inc":
		return ledgers(how).Inc(ctx, "n", 1)
	case "push":
		return ledgers(how).Push(ctx, "items", item)
	case "always":
		return ledgers(how, patient, scope.MaxAttempts(-1)).Atomic(ctx, add)
	}
	return ledgers(how, patient).Atomic(ctx, add)
}

const perProcess = 200

// processes makes four processes change a scope of a store, each several times, and returns
// their output. In memory they are four groups of goroutines.
func (e *env) processes(how string, nodes []*testkit.Child) (lines []string) {
	e.Helper()
	if nodes == nil {
		var mu sync.Mutex
		var group sync.WaitGroup
		for p := range 4 {
			group.Go(func() {
				some := changes(e.ctx, func(id string, o ...scope.Option) scope.Scope[ledger] { return at[ledger](e, "ledger", id, o...) }, how, fmt.Sprint("p", p), perProcess)
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, some...)
			})
		}
		group.Wait()
		return lines
	}
	for p, n := range nodes {
		n.Send("%s p%d %d", how, p, perProcess)
	}
	for _, n := range nodes {
		for line := n.Next(); line != "end"; line = n.Next() {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestFourProcesses verifies, with four processes (groups of goroutines in memory) that each
// change one scope 200 times: sums are exact and no item is missing, whether by verbs that
// need no version or by functions that try until they are through; every success says that
// it has changed something, at a version that no other was told. Functions with the retries
// that there are by default either succeed or are told of four attempts, and the sum is the
// number of those that did.
func TestFourProcesses(t *testing.T) {
	each(t, func(e *env) {
		e.ctx = context.Background() // the workspace of the processes
		var nodes []*testkit.Child
		if e.where != "" {
			for range 4 {
				nodes = append(nodes, testkit.StartChild(e.T, "TestNothing", nodeVar, e.where))
			}
		}
		hows := []string{"inc", "push", "always", "default"}
		for _, how := range testlevel.Pick(hows[:2], hows, hows) {
			e.summed(how, e.processes(how, nodes))
		}
	})
}

// summed compares the results of the calls with the state of the scope.
func (e *env) summed(how string, lines []string) {
	e.Helper()
	done, lost, versions := 0, 0, map[int64]bool{}
	for _, line := range lines {
		var version int64
		var changed bool
		switch n, _ := fmt.Sscanf(line, "done %d %t", &version, &changed); {
		case line == "lost 4" && how == "default":
			lost++
		case n != 2 || !changed || versions[version]:
			e.Errorf("%s: unexpected outcome %s", how, line)
		default:
			versions[version] = true
			done++
		}
	}
	s, err := at[ledger](e, "ledger", how).Get(e.ctx)
	e.ok(err)
	got := s.State.N
	switch how {
	case "push":
		seen := map[string]bool{}
		for _, item := range s.State.Items {
			seen[item] = true
		}
		if got = int64(len(s.State.Items)); len(seen) != len(s.State.Items) {
			e.Errorf("got %d items, of which %d are distinct", got, len(seen))
		}
	}
	if done+lost != 4*perProcess || int64(done) != got || s.Version != got-1 || done == 0 {
		e.Errorf("%s: %d calls succeeded and %d failed, but the value is %d at version %d", how, done, lost, got, s.Version)
	}
	e.Logf("%s: %d succeeded, %d failed", how, done, lost)
}

// writeForever changes a scope, and prints each change after it is acknowledged.
func writeForever(ctx context.Context, l scope.Scope[ledger], name string) error {
	for i := 0; ; i++ {
		item := fmt.Sprintf("%s-%d", name, i)
		if _, err := l.SetRecord(ctx, "done", item, i); err != nil {
			return err
		}
		fmt.Println("set", item)
		if _, err := l.Push(ctx, "items", item); err != nil {
			return err
		}
		fmt.Println("push", item)
		if _, err := l.Inc(ctx, "n", 1); err != nil {
			return err
		}
		fmt.Println("inc", item)
		_, err := l.Atomic(ctx, func(_ context.Context, l ledger) (ledger, error) {
			l.N += 1000
			return l, nil
		})
		switch {
		case errors.Is(err, holdfast.ErrConcurrency):
		case err != nil:
			return err
		default:
			fmt.Println("atomic", item)
		}
	}
}

// TestKilledProcessLosesNothingOfAScope verifies, with processes that are killed (SIGKILL)
// while they change a large scope, two at a time: what they were told is made is there, once;
// what they were not told is there once or not at all; the scope can be read and changed at
// once; and what the dead had begun, done again, is done.
func TestKilledProcessLosesNothingOfAScope(t *testing.T) {
	each(t, func(e *env) {
		e.ctx = context.Background()
		l := at[ledger](e, "ledger", "l")
		_, err := l.Patch(e.ctx, ledger{Pad: strings.Repeat("x", 30<<10), Items: []string{}, Done: map[string]int64{}})
		e.ok(err)
		acked := map[string]int{}
		for round := range rounds {
			var group sync.WaitGroup
			var mu sync.Mutex
			for p := range 2 {
				node := testkit.StartChild(e.T, "TestNothing", nodeVar, e.where)
				node.Send("forever k%d-%d 0", round, p)
				group.Go(func() {
					lines := killedAfter(node, 5+rand.IntN(25))
					mu.Lock()
					defer mu.Unlock()
					for _, line := range lines {
						acked[line]++
					}
				})
			}
			group.Wait()
			retried := fmt.Sprintf("k%d-0-0", round) // the first that it did: done again, it is done
			s, err := at[ledger](e, "ledger", "l", scope.Budget(20*time.Second)).SetRecord(e.ctx, "done", retried, 0)
			e.ok(err)
			if _, there := s.State.Done[retried]; !there || !s.Exists {
				e.Errorf("%s is missing: %v", retried, s.State.Done)
			}
		}
		e.survived(acked)
	}, shared...)
}

// rounds is how often two processes are killed.
const rounds = 3

func killedAfter(node *testkit.Child, n int) (lines []string) {
	for line := range node.Lines() {
		if lines = append(lines, line); len(lines) == n {
			node.Signal(os.Kill)
		}
	}
	return lines
}

// survived compares what was acknowledged with what is there.
func (e *env) survived(acked map[string]int) {
	e.Helper()
	s, err := at[ledger](e, "ledger", "l").Get(e.ctx)
	e.ok(err)
	pushed, incs, atomics := map[string]int{}, int64(0), int64(0)
	for _, item := range s.State.Items {
		if pushed[item]++; pushed[item] > 1 {
			e.Errorf("%s was pushed twice", item)
		}
	}
	for line := range acked {
		what, item, _ := strings.Cut(line, " ")
		_, done := s.State.Done[item]
		switch {
		case what == "inc":
			incs++
		case what == "atomic":
			atomics++
		case what == "set" && !done, what == "push" && pushed[item] == 0:
			e.Errorf("%s was acknowledged, but is missing", line)
		}
	}
	const dead = 2 * rounds // each may have had one more under way
	if n := s.State.N % 1000; n < incs || n > incs+dead {
		e.Errorf("%d were added, but %d acknowledged", n, incs)
	}
	if n := s.State.N / 1000; n < atomics || n > atomics+dead {
		e.Errorf("%d were added by functions, but %d acknowledged", n, atomics)
	}
	if incs == 0 || atomics == 0 || len(s.State.Pad) != 30<<10 {
		e.Errorf("%d and %d were acknowledged, and the padding has %d bytes", incs, atomics, len(s.State.Pad))
	}
	e.Logf("%d acknowledged, all stored", len(acked))
}
