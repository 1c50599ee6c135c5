package storetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
)

const (
	appenders    = 8 // goroutines of each of four processes
	sharedBy     = 4
	raceStreams  = 8
	unknownLater = math.MaxInt64
)

func init() { roles["appender"] = appendForever }

// appendForever is a worker process. Its appenders append to shared streams at the version that
// they believe is the last, and print each call before it is made ("call id stream want size time")
// and its result ("done id ok head time"). The id is the name of the events.
func appendForever(ctx context.Context, db holdfast.Database, name string) error {
	hf, err := holdfast.Open(ctx, db, holdfast.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	heads := make([]stream.Version, raceStreams)
	for i := range heads {
		heads[i] = stream.None
	}
	failed := make(chan error, appenders)
	for i := range appenders {
		go func() {
			for n := 0; ; n++ {
				k := rand.IntN(raceStreams)
				mu.Lock()
				want := heads[k]
				mu.Unlock()
				head, err := appendAt(ctx, hf, fmt.Sprintf("%s.%d.%d", name, i, n), k, want)
				if err != nil {
					failed <- err
					return
				}
				mu.Lock()
				heads[k] = head
				mu.Unlock()
			}
		}()
	}
	return <-failed
}

func appendAt(ctx context.Context, hf *holdfast.Engine, id string, k int, want stream.Version) (stream.Version, error) {
	size := 1 + rand.IntN(2)
	all := []stream.Event{{Name: id}, {Name: id}}[:size]
	fmt.Printf("call %s %d %d %d %d\n", id, k, want, size, clock.Now().UnixNano())
	head, err := stream.Append(ctx, hf, fmt.Sprint("race-", k), want, all...)
	var refused *fault.Error
	switch {
	case errors.As(err, &refused) && refused.Code == fault.Concurrency:
		last, ok := refused.Fields["lastVersion"].(int64)
		if !ok {
			return 0, fmt.Errorf("refusal has no last version: %v", refused.Fields)
		}
		head = stream.Version(last)
	case err != nil:
		return 0, err
	}
	fmt.Printf("done %s %t %d %d\n", id, err == nil, head, clock.Now().UnixNano())
	return head, nil
}

// attempt is an append as the model sees it.
type attempt struct {
	id         string
	stream     int
	want, size int64
}

// outcome is the result of an attempt; the head is the stream's last version.
type outcome struct {
	ok   bool
	head int64
}

// headModel is a stream reduced to its head: an append is applied if the head is the expected one,
// and otherwise returns the head.
var headModel = porcupine.Model{
	Partition: func(all []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, raceStreams)
		for _, op := range all {
			k := op.Input.(attempt).stream
			parts[k] = append(parts[k], op)
		}
		return parts
	},
	Init: func() any { return int64(-1) },
	Step: func(state, input, output any) (bool, any) {
		head, in, out := state.(int64), input.(attempt), output.(outcome)
		if out.ok {
			return head == in.want && out.head == head+in.size, head + in.size
		}
		return head != in.want && out.head == head, head
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
}

// TestAppendsAreLinearizable verifies, with 32 writers in four processes over eight streams, each
// process killed (SIGKILL) and restarted several times: there is an order of all calls, each at a
// moment between its call and its response, in which every append is applied exactly if the stream
// is at the expected version, and every refused one gets the true last version. Acknowledged events
// exist, at the acknowledged version, and no version is missing.
func TestAppendsAreLinearizable(t *testing.T) {
	OnBoth(t, appendRace)
}

func appendRace(t *testing.T, db string) {
	hf := holdfasttest.OpenOn(t, database(db))
	var mu sync.Mutex
	var lines []string
	var group sync.WaitGroup
	for p := range sharedBy {
		group.Go(func() {
			for round := range testlevel.Pick(1, 2, 20) {
				some := killedAppender(t, db, fmt.Sprintf("p%d-%d", p, round), 150+rand.IntN(250))
				mu.Lock()
				lines = append(lines, some...)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	checkAppends(t, hf, lines)
}

func killedAppender(t *testing.T, db, name string, after int) []string {
	cmd := process("appender", db, name)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	defer cmd.Wait()
	lines := readLines(bufio.NewReader(out), after, func() { _ = cmd.Process.Kill() })
	if len(lines) < after {
		t.Errorf("appender %s exited without a kill", name)
	}
	return lines
}

func checkAppends(t *testing.T, hf *holdfast.Engine, lines []string) {
	ops := map[string]*porcupine.Operation{}
	for _, line := range lines {
		var id string
		var a, b, c, d int64
		var ok bool
		if n, _ := fmt.Sscanf(line, "call %s %d %d %d %d", &id, &a, &b, &c, &d); n == 5 {
			ops[id] = &porcupine.Operation{Input: attempt{id, int(a), b, c}, Call: d, Return: unknownLater}
		}
		if n, _ := fmt.Sscanf(line, "done %s %t %d %d", &id, &ok, &a, &b); n == 4 {
			ops[id].Output, ops[id].Return = outcome{ok, a}, b
		}
	}
	landed := map[string]int64{} // by id, the last version of its events
	for k := range raceStreams {
		for v, id := range readAll(t, hf, fmt.Sprint("race-", k)) {
			landed[id] = int64(v)
		}
	}
	var history []porcupine.Operation
	var acked, refused, unknown int
	for id, op := range ops {
		at, there := landed[id]
		switch out, known := op.Output.(outcome); {
		case !known && !there: // the process was killed, and the append was not applied
			unknown++
			continue
		case !known: // the process was killed, and the append was applied
			unknown++
			op.Output = outcome{true, at}
		case out.ok && (!there || at != out.head):
			t.Errorf("%s was acknowledged at %d and is at %d (exists %t)", id, out.head, at, there)
		case !out.ok && there:
			t.Errorf("%s was refused, but is at %d", id, at)
		case out.ok:
			acked++
		default:
			refused++
		}
		op.ClientId = len(history)
		history = append(history, *op)
	}
	if got := porcupine.CheckOperationsTimeout(headModel, history, time.Minute); got != porcupine.Ok {
		t.Errorf("the history of %d appends is not linearizable: %s", len(history), got)
		if dir := os.Getenv("HOLDFAST_TEST_KEEP"); dir != "" {
			_, info := porcupine.CheckOperationsVerbose(headModel, history, time.Minute)
			_ = porcupine.VisualizePath(headModel, info, dir+"/appends.html")
		}
	}
	if acked == 0 || refused == 0 {
		t.Errorf("%d appends were applied and %d refused, want some of each", acked, refused)
	}
	t.Logf("%d appends were applied, %d refused, %d interrupted by a kill", acked, refused, unknown)
}

// TestOneOfTwoCreatesWins verifies that of two appends that expect a new stream, from two engines,
// one is applied and the other is refused with the stream's version 0.
func TestOneOfTwoCreatesWins(t *testing.T) {
	for name, db := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + holdfasttest.SQLite(t) },
		"postgres": func(t *testing.T) string { return holdfasttest.PostgreSQL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := db(t)
			engines := []*holdfast.Engine{holdfasttest.OpenOn(t, database(at)), holdfasttest.OpenOn(t, database(at))}
			for round := range testlevel.Pick(8, 120, 5000) {
				name := fmt.Sprint("new-", round)
				won, lost := holdfasttest.Race(t, 2, func(i int) error {
					_, err := stream.Append(context.Background(), engines[i], name, stream.None, stream.Event{Name: fmt.Sprint(i)})
					return err
				})
				if won != 1 {
					t.Fatalf("round %d: %d of two callers created the stream, want 1: %v", round, won, lost)
				}
				var refused *fault.Error
				if !errors.As(lost[0], &refused) || refused.Code != fault.Concurrency || refused.Fields["lastVersion"] != int64(0) {
					t.Fatalf("round %d: the refused caller got %v", round, lost[0])
				}
				if all := readAll(t, engines[0], name); len(all) != 1 {
					t.Fatalf("round %d: got events %q, want 1", round, all)
				}
			}
		})
	}
}
