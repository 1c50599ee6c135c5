package reactions_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/stream"
)

const (
	childVar  = "HOLDFAST_REACTIONS_CHILD" // the database of a child process
	leaseVar  = "HOLDFAST_REACTIONS_LEASE"
	maxDeaths = 2
)

// TestChild is no test, but a node in its own process, which the tests below start, stop
// and kill.
func TestChild(t *testing.T) {
	db := os.Getenv(childVar)
	if db == "" {
		t.Skip("runs only as a child process")
	}
	lease, err := time.ParseDuration(os.Getenv(leaseVar))
	if err == nil {
		err = reactInChild(db, lease)
	}
	fmt.Println("ended:", err)
	os.Exit(0)
}

// reactInChild runs a node until it is killed. The name of an event selects the action
// of its body.
func reactInChild(db string, lease time.Duration) error {
	resumed := make(chan struct{})
	go func() {
		bufio.NewScanner(os.Stdin).Scan()
		close(resumed)
	}()
	body := func(_ context.Context, d *stream.Delivery) error {
		if strings.HasPrefix(d.Stream, "c") {
			d.WriteTx(writeOut(d, "child"))
		}
		switch d.Name {
		case "wait":
			fmt.Println("working on", d.Stream)
			<-resumed
		case "kill":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case "panic in the commit":
			d.WriteTx(func(context.Context, holdfast.Tx) error { panic("ouch") })
		}
		return nil
	}
	hf, err := holdfast.Open(context.Background(), databaseAt(db), holdfast.Config{Log: slog.New(slog.DiscardHandler), SweepEvery: time.Hour},
		stream.React("r", following, body, stream.Options{Lease: lease, MaxCrashes: maxDeaths, Retry: lasting(0, time.Millisecond)}))
	if err != nil {
		return err
	}
	engine.Of(hf).Reactions().Trace = func(c reactions.TraceEvent) {
		if c.What != "claimed" {
			fmt.Println(c.What, c.Stream)
		}
	}
	return hf.Run(context.Background())
}

var following = stream.Select{Pattern: "^[cps]"}

// startChild starts a node in another process.
func startChild(t *testing.T, db string, lease time.Duration) *testkit.Child {
	t.Helper()
	return testkit.Start(t, testkit.Self("TestChild", childVar+"="+db, leaseVar+"="+lease.String()))
}

// expectLines waits until the child has printed all of the lines, in any order and among
// others.
func expectLines(c *testkit.Child, lines ...string) {
	for len(lines) > 0 {
		line := c.Next()
		lines = slices.DeleteFunc(lines, func(l string) bool { return l == line })
	}
}

// successor is a node in the test's own process that only records events.
func successor(t *testing.T, db string, lease time.Duration) *node {
	return startNode(t, databaseAt(db), briskly, stream.React("r", following, func(_ context.Context, d *stream.Delivery) error {
		if strings.HasPrefix(d.Stream, "c") {
			d.WriteTx(writeOut(d, "successor"))
		}
		return nil
	}, stream.Options{Lease: lease, MaxCrashes: maxDeaths}))
}

// TestAKilledProcessIsSucceeded verifies that another node handles the streams of a
// killed process (SIGKILL) once their leases have expired, and that the commits of the
// killed process are not repeated.
func TestAKilledProcessIsSucceeded(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		const lease = time.Second
		hf := openNode(t, databaseAt(db), briskly)
		c := startChild(t, db, lease)
		emitOnce := sync.OnceFunc(func() {
			emit(t, hf, "c", "a", "wait", "b")
			emit(t, hf, "p", "a", "wait", "b")
		})
		testkit.Eventually(t, "the reaction is registered", func() bool {
			all, err := reactions.List(context.Background(), engine.Of(hf), "r")
			return err == nil && len(all) == 1
		})
		emitOnce()
		expectLines(c, "working on c", "working on p")
		c.Kill()
		next := successor(t, db, lease)
		for _, name := range []string{"c", "p"} {
			if p := waitForPosition(t, next, "r", name, "is done", handled(2)); p.Failures != 0 || p.Blocked {
				t.Errorf("got position %+v", p)
			}
		}
		if by := wantOut(t, next, "c", 3); !slices.Equal(by, []string{"child", "successor", "successor"}) {
			t.Errorf("got writers %v", by)
		}
	})
}

// TestAStoppedProcessCanWriteNothing verifies that a process which was stopped (SIGSTOP)
// until its leases expired, and then continues (SIGCONT), can neither acknowledge nor
// commit: another node has handled its streams, and they do not change.
func TestAStoppedProcessCanWriteNothing(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		const lease = 5 * time.Minute // so that no renewal detects the loss
		hf := openNode(t, databaseAt(db), briskly)
		c := startChild(t, db, lease)
		testkit.Eventually(t, "the reaction is registered", func() bool {
			all, err := reactions.List(context.Background(), engine.Of(hf), "r")
			return err == nil && len(all) == 1
		})
		emit(t, hf, "c", "wait", "b")
		emit(t, hf, "p", "wait", "b")
		expectLines(c, "working on c", "working on p")
		storetest.Stop(t, hf.Engine, c)
		holdfasttest.Advance(t, hf.Engine, time.Hour)
		next := successor(t, db, lease)
		for _, name := range []string{"c", "p"} {
			waitForPosition(t, next, "r", name, "is done", handled(1))
		}
		next.stop() // the epochs are those of the successor, and no lease is left
		before, err := holdfast.Collect(stream.ListPositions(context.Background(), hf, stream.PositionFilter{}))
		if err != nil {
			t.Fatal(err)
		}
		c.Signal(syscall.SIGCONT)
		c.Send("go on")
		expectLines(c, "lost c", "lost p")
		after, err := holdfast.Collect(stream.ListPositions(context.Background(), hf, stream.PositionFilter{}))
		if err != nil || !slices.Equal(before, after) {
			t.Errorf("the late process changed a position: got %+v, error %v, want %+v", after, err, before)
		}
		if by := wantOut(t, hf, "c", 2); !slices.Equal(by, []string{"successor", "successor"}) {
			t.Errorf("got writers %v", by)
		}
	})
}

// TestAnEventThatKillsIsBlockedAlone verifies that an event which kills its process each
// time gets its stream blocked right before that event, after the allowed number of
// crashes, and that the several dozen other streams of the process are all handled. None
// of them is blocked, although one more crash would have blocked each.
func TestAnEventThatKillsIsBlockedAlone(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		const streams, lease = 36, 5 * time.Minute
		hf := startNode(t, databaseAt(db), briskly) // runs only a janitor
		def := reactions.Definition{Name: "r", Streams: following.Pattern, Options: reactions.DefaultOptions()}
		def.MaxCrashes = maxDeaths
		if _, err := reactions.Register(context.Background(), engine.Of(hf), def); err != nil {
			t.Fatal(err)
		}
		err := hf.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) error {
			for i := range streams {
				if _, err := stream.Append(ctx, tx, fmt.Sprintf("s-%02d", i), stream.Any, stream.Event{Name: "a"}, stream.Event{Name: "b"}); err != nil {
					return err
				}
			}
			_, err := stream.Append(ctx, tx, "poison", stream.Any, stream.Event{Name: "a"}, stream.Event{Name: "b"}, stream.Event{Name: "kill"}, stream.Event{Name: "c"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		dead, deaths := discardOutput(startChild(t, db, lease)), 0
		testkit.Eventually(t, "the poison event is blocked and all others are handled", func() bool {
			select {
			case <-dead:
				deaths++
				holdfasttest.Advance(t, hf.Engine, time.Hour)
				dead = discardOutput(startChild(t, db, lease))
			default:
			}
			_ = clock.Wait(context.Background(), 50*time.Millisecond) // leave the CPU to the child
			all, err := holdfast.Collect(stream.ListPositions(context.Background(), hf, stream.PositionFilter{Reaction: "r"}))
			if err != nil {
				t.Fatal(err)
			}
			done := 0
			for _, p := range all {
				if p.Stream != "poison" && p.Blocked {
					t.Fatalf("another stream is blocked: %+v", p)
				}
				if p.Blocked || (p.Watermark == p.Head && p.Holder == "") {
					done++
				}
			}
			return done == streams+1
		})
		p := positionOf(t, hf, "r", "poison")
		if !p.Blocked || p.Watermark != 1 || p.Failing != 2 || p.Crashes != maxDeaths || p.Failures != 0 || !strings.Contains(p.Error, "crashed") {
			t.Errorf("position of the poison stream is %+v", *p)
		}
		t.Logf("%d processes crashed", deaths)
		if names, _ := historyOf(t, hf, "r", "poison"); !slices.Equal(names, []string{"blocked"}) {
			t.Errorf("got history %v, want blocked", names)
		}
		done, err := stream.Skip(context.Background(), hf, "*", stream.PositionFilter{Blocked: new(true)})
		if err != nil || len(done.Repaired) != 1 || done.Repaired[0].Watermark != 2 {
			t.Errorf("skip returned %+v, error %v", done, err)
		}
		waitForPosition(t, hf, "r", "poison", "is done", handled(3))
	})
}

// discardOutput discards the output of the child. The channel is closed when the child has
// exited.
func discardOutput(c *testkit.Child) (dead chan struct{}) {
	dead = make(chan struct{})
	go func() {
		defer close(dead)
		for range c.Lines() {
			continue
		}
	}()
	return dead
}

// TestAPanicInACommitIsAFailure verifies that a panic in a closure given to
// Delivery.Commit is a failure of its event, like a panic in the body, and that the
// process survives.
func TestAPanicInACommitIsAFailure(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		hf := openNode(t, databaseAt(db), briskly)
		def := reactions.Definition{Name: "r", Streams: following.Pattern, Options: reactions.DefaultOptions()}
		if _, err := reactions.Register(context.Background(), engine.Of(hf), def); err != nil {
			t.Fatal(err)
		}
		emit(t, hf, "c", "panic in the commit")
		c := startChild(t, db, time.Minute)
		expectLines(c, "blocked c")
	})
}
