package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

const (
	processes = 4
	each4     = 16 // callers in each process
)

// processGroup is several processes, whose output lines arrive in one channel.
type processGroup struct {
	t     *testing.T
	nodes []*testkit.Child
	lines chan processLine
}

type processLine struct {
	by   int
	line string
}

func newProcessGroup(t *testing.T, db string) *processGroup {
	c := &processGroup{t: t, lines: make(chan processLine)}
	done := make(chan struct{})
	for i := range processes {
		n := startNode(t, db)
		c.nodes = append(c.nodes, n)
		go func() {
			for line := range n.Lines() {
				select {
				case c.lines <- processLine{i, line}:
				case <-done:
				}
			}
		}()
	}
	t.Cleanup(func() { close(done) })
	return c
}

func (c *processGroup) fire(step, id string) {
	for _, n := range c.nodes {
		n.Send("fire %s %s %d", step, id, each4)
	}
}

func (c *processGroup) next() processLine {
	c.t.Helper()
	patience := time.NewTimer(60 * time.Second)
	defer patience.Stop()
	select {
	case s := <-c.lines:
		return s
	case <-patience.C:
		c.t.Fatal("the processes printed nothing")
	}
	return processLine{}
}

// Verifies that of 64 callers in four processes that fire one claimed step at once, one runs its body, which
// ends only when all others have their response: they get the holder, the start and the end of the lease, and
// have done nothing. There is one body, one settle, two versions and two events.
func TestManyCallersOfAClaimedStep(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w := newWorld(t, db, invoices)
		w.makeOut()
		c := newProcessGroup(t, db)
		for r := range testlevel.Pick(3, 20, 1000) {
			id := fmt.Sprint("r", r)
			w.create(id)
			c.fire("close", id)
			body, lost, won := -1, 0, 0
			for won+lost < processes*each4 {
				s := c.next()
				switch {
				case s.line == "body "+id && body < 0:
					body = s.by
				case s.line == "lost "+id+" CLAIM_FAILED true false":
					lost++
				case s.line == "won "+id+" closed 2" && lost == processes*each4-1:
					won++
				default:
					t.Fatalf("round %d: process %d printed %q after %d losers and %d winners", r, s.by, s.line, lost, won)
				}
				if lost == processes*each4-1 && won == 0 {
					if body < 0 {
						s := c.next()
						if s.line != "body "+id {
							t.Fatalf("round %d: got %q", r, s.line)
						}
						body = s.by
					}
					if got := w.get(id); got.Status != "closing" || got.Version != 1 {
						t.Errorf("round %d: claimed entity is %+v", r, got)
					}
					c.nodes[body].Send("go %s", id)
				}
			}
			w.happened(id, "closed", "created", "claimed", "settled/close")
			w.written(id, "node")
		}
	})
}

// Verifies that of 64 callers in four processes that fire one step without a claim at once, one commits, and
// the others are refused because the entity has moved. There is one event, and one write.
func TestManyCallersOfAnUnclaimedStep(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		w := newWorld(t, db, invoices)
		w.makeOut()
		c := newProcessGroup(t, db)
		for r := range testlevel.Pick(3, 20, 1000) {
			step := []string{"note", "skip"}[r%2]
			id := fmt.Sprint("r", r)
			w.create(id)
			c.fire(step, id)
			lost, won := 0, 0
			for won+lost < processes*each4 {
				s := c.next()
				switch f := strings.Fields(s.line); {
				case s.line == "won "+id+" noted 1":
					won++
				case f[0] == "lost" && f[1] == id && (f[2] == string(fault.Concurrency) || f[2] == string(fault.InvalidTransition)):
					lost++
				default:
					t.Fatalf("round %d: process %d printed %q", r, s.by, s.line)
				}
			}
			if won != 1 {
				t.Errorf("round %d: %d processes won, want 1", r, won)
			}
			w.happened(id, "noted", "created", "settled/"+step)
			if step == "note" {
				w.written(id, "node")
			}
		}
	})
}

// Verifies that callers of different steps of one entity, claimed and unclaimed, and a
// janitor that goes round meanwhile, leave it with one step done, and one history.
func TestManyCallersOfDifferentSteps(t *testing.T) {
	everywhere(t, invoices, func(t *testing.T, w *world) {
		steps := []string{"close", "try", "note", "skip"}
		for _, id := range ids("d", 20) {
			w.create(id)
			won, lost := holdfasttest.Race(t, 17, func(i int) error {
				if i == 16 {
					w.round()
					return errOwn
				}
				_, err := w.fire(id, steps[i%4])
				return err
			})
			if won != 1 {
				t.Errorf("%s: %d callers won, want 1", id, won)
			}
			for _, err := range lost {
				switch fault.CodeOf(err) {
				case fault.ClaimFailed, fault.Concurrency, fault.InvalidTransition:
				default:
					if err != errOwn {
						t.Errorf("%s: %v", id, err)
					}
				}
			}
			h := strings.Replace(w.history(id), "seen", "created", 1)
			switch h {
			case "created settled/note", "created settled/skip", "created claimed settled/close", "created claimed settled/try":
			default:
				t.Errorf("%s: %s", id, h)
			}
		}
	})
}
