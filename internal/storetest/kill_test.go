package storetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
)

const (
	roleVar   = "HOLDFAST_TEST_ROLE"   // the role of a worker process
	workerVar = "HOLDFAST_TEST_WORKER" // its database
	nameVar   = "HOLDFAST_TEST_NAME"
)

// roles are the roles of a worker process; each ends by a kill, by the end of its input, or by an
// error.
var roles = map[string]func(ctx context.Context, db holdfast.Database, name string) error{
	"writer": work,
	"racer":  raceForLeases,
}

func TestMain(m *testing.M) {
	if role, ok := roles[os.Getenv(roleVar)]; ok {
		if err := role(context.Background(), database(os.Getenv(workerVar)), os.Getenv(nameVar)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(holdfasttest.Main(m).Run())
}

func database(name string) holdfast.Database {
	return holdfasttest.At(strings.TrimPrefix(name, "sqlite:"))
}

// work writes forever and prints a line after each acknowledged write: an event on a stream shared
// by all workers, one on a stream of its own, a transition of its entity, and a sum that all add
// to.
func work(ctx context.Context, db holdfast.Database, name string) error {
	hf, err := holdfast.Open(ctx, db, holdfast.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if _, err := entities.Create(ctx, engine.Of(hf), entities.CreateArgs{Lifecycle: "thing", ID: name, Status: "a"}); err != nil {
		return err
	}
	for n := int64(0); ; n++ {
		if err := workOnce(ctx, hf, name, n); err != nil {
			return err
		}
	}
}

func workOnce(ctx context.Context, hf *holdfast.Engine, name string, n int64) error {
	mark := fmt.Sprintf("%s-%d", name, n)
	last, err := stream.Append(ctx, hf, "shared", stream.Any, stream.Event{Name: mark})
	if err != nil {
		return err
	}
	fmt.Println("shared", last, mark)
	if last, err = stream.Append(ctx, hf, "own-"+name, stream.Version(n-1), stream.Event{Name: mark}); err != nil {
		return err
	}
	fmt.Println("own-"+name, last, mark)
	got, err := entities.Transition(ctx, engine.Of(hf), entities.TransitionArgs{Lifecycle: "thing", ID: name, From: []string{"a"}, To: "a", ExpectVersion: &n, Event: mark})
	if err != nil {
		return err
	}
	fmt.Println(entities.Stream("thing", name), got.Version, mark)
	sum, err := Inc(ctx, hf, IncArgs{Kind: "user", ID: "sum", Field: "n", By: 1})
	if err != nil {
		return err
	}
	fmt.Println(scopestore.Stream("user", "sum"), sum.Version, "inc")
	return nil
}

// TestKilledProcessLosesNothingAcknowledged verifies, with a process that is killed (SIGKILL) while
// it writes, many times over: every acknowledged write exists afterwards, at the acknowledged
// version; no version is missing or duplicated; and the next process continues without repair. On
// SQLite it runs with one process, and with four on one file.
func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); killRounds(t, "sqlite:"+holdfasttest.SQLite(t), 1) })
	t.Run("sqlite, four processes", func(t *testing.T) { t.Parallel(); killRounds(t, "sqlite:"+holdfasttest.SQLite(t), 4) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); killRounds(t, holdfasttest.PostgreSQL(t), 1) })
	t.Run("postgres, four processes", func(t *testing.T) { t.Parallel(); killRounds(t, holdfasttest.PostgreSQL(t), 4) })
}

func killRounds(t *testing.T, db string, processes int) {
	acked := map[string]string{} // stream and version to mark
	for round := range testlevel.Pick(2, 20, 200) {
		var mu sync.Mutex
		var group sync.WaitGroup
		for p := range processes {
			group.Go(func() {
				lines := killedWorker(t, db, fmt.Sprintf("w%d-%d", round, p), 10+rand.IntN(60))
				mu.Lock()
				defer mu.Unlock()
				for _, line := range lines {
					at, mark, _ := cutLast(line)
					if before, twice := acked[at]; twice {
						t.Errorf("%s was acknowledged as %s and as %s", at, before, mark)
					}
					acked[at] = mark
				}
			})
		}
		group.Wait()
	}
	checkAcknowledged(t, database(db), acked)
}

// killedWorker runs a worker until it has acknowledged a number of writes, kills it, and returns
// every complete line that it printed.
func killedWorker(t *testing.T, db, name string, after int) []string {
	cmd := process("writer", db, name)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return nil
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return nil
	}
	defer cmd.Wait()
	lines := readLines(out, after, func() { _ = cmd.Process.Kill() })
	if len(lines) < after {
		t.Errorf("worker %s exited after %d writes without a kill", name, len(lines))
	}
	return lines
}

// process returns the test program itself as a command, in a role.
func process(role, db, name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role, workerVar+"="+db, nameVar+"="+name)
	cmd.Stderr = os.Stderr
	return cmd
}

func readLines(r io.Reader, after int, then func()) (lines []string) {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return lines // an incomplete last line was cut off by the kill
		}
		if lines = append(lines, strings.TrimSuffix(line, "\n")); len(lines) == after {
			then()
		}
	}
}

func cutLast(line string) (before, after string, ok bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 {
		return line, "", false
	}
	return line[:i], line[i+1:], true
}

func checkAcknowledged(t *testing.T, db holdfast.Database, acked map[string]string) {
	hf := holdfasttest.OpenOn(t, db)
	if len(acked) == 0 {
		t.Fatal("no write was acknowledged")
	}
	names := map[string]bool{}
	for at := range acked {
		name, _, _ := cutLast(at)
		names[name] = true
	}
	found := map[string]string{}
	for name := range names {
		for v, mark := range readAll(t, hf, name) {
			found[fmt.Sprintf("%s %d", name, v)] = mark
		}
	}
	for at, mark := range acked {
		if found[at] != mark {
			t.Errorf("acknowledged %s as %q, found %q", at, mark, found[at])
		}
	}
	t.Logf("%d writes were acknowledged and found; %d more were applied but not acknowledged", len(acked), len(found)-len(acked))
}

// readAll reads a whole stream, page by page, and checks that no version is missing.
func readAll(t *testing.T, hf *holdfast.Engine, name string) (marks []string) {
	for {
		page, err := holdfast.Collect(stream.Read(context.Background(), hf, name, stream.Version(len(marks))))
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return marks
		}
		for _, ev := range page {
			if ev.Version != stream.Version(len(marks)) {
				t.Fatalf("%s has version %d, want %d", name, ev.Version, len(marks))
			}
			marks = append(marks, ev.Name)
		}
	}
}
