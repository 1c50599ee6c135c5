package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var testVerb = NewVerb(Decl{Name: "test.verb", Group: true},
	func(row int) []string { return []string{strconv.Itoa(row)} },
	func(row int, a *Args) { a.Int("row", int64(row)) },
	func(*int, Row) error { return nil })

var serialVerb = NewVerb(Decl{Name: "test.serial", Serial: true},
	func(row int) []string { return []string{strconv.Itoa(row)} },
	func(row int, a *Args) { a.Int("row", int64(row)) },
	func(*int, Row) error { return nil })

func serialCommand(row int) Command {
	return serialVerb.Command(Partition{Workspace: "w"}, row)
}

func testCommand(row int) Command {
	return testVerb.Command(Partition{Workspace: "w"}, row)
}

// rowsInFlight fails the test if two commands in flight share a row, or if a serial command shares a round.
type rowsInFlight struct {
	*testing.T
	mu   sync.Mutex
	rows map[Key]bool
	ran  atomic.Int64
}

func (u *rowsInFlight) run(members ...Command) {
	if members[0].Decl().Serial && len(members) > 1 {
		u.Errorf("%d serial commands share a round", len(members))
	}
	u.mu.Lock()
	for _, c := range members {
		for _, k := range c.Keys() {
			if u.rows[k] {
				u.Errorf("row %v is in flight twice", k)
			}
			u.rows[k] = true
		}
	}
	u.mu.Unlock()
	u.ran.Add(int64(len(members)))
	u.mu.Lock()
	for _, c := range members {
		for _, k := range c.Keys() {
			delete(u.rows, k)
		}
	}
	u.mu.Unlock()
}

func (u *rowsInFlight) rounds(slots int) Rounds {
	return Rounds{
		Queue: func(c Command) string { return c.Decl().Name }, Fits: Apart, Exclusive: true, Most: 8,
		Slots:   func(time.Duration) int { return slots },
		Acquire: func() (any, func(), error) { return nil, func() {}, nil },
		Lone:    func(_ context.Context, c Command) error { u.run(c); return nil },
		Serve: func(_ any, members []Command) []error {
			u.run(members...)
			return make([]error, len(members))
		},
		Alone: func(context.Context, Command) error { return errors.New("unexpected command outside of a group") },
	}
}

// TestGrouperServesEverybodyOnce verifies that many callers on few rows, some of which withdraw, are each
// served once or get an error that they withdrew; that no two rounds in flight share a row, and no serial command
// shares a round; and that no slot, queue or row is left behind.
func TestGrouperServesEverybodyOnce(t *testing.T) {
	for slots := 1; slots <= 4; slots++ {
		u := &rowsInFlight{T: t, rows: map[Key]bool{}}
		g := NewGrouper(u.rounds(slots))
		var served, left atomic.Int64
		var group sync.WaitGroup
		for range 64 {
			group.Go(func() {
				for range 300 {
					ctx, cancel := context.WithCancel(context.Background())
					if rand.IntN(5) == 0 {
						go cancel()
					}
					c := testCommand(rand.IntN(6))
					if rand.IntN(3) == 0 {
						c = serialCommand(rand.IntN(6))
					}
					switch err := g.Do(ctx, c); {
					case err == nil:
						served.Add(1)
					case errors.Is(err, context.Canceled):
						left.Add(1)
					default:
						t.Error(err)
					}
					cancel()
				}
			})
		}
		group.Wait()
		if served.Load() != u.ran.Load() || served.Load()+left.Load() != 64*300 {
			t.Errorf("%d slots: %d commands ran, %d callers got a result, %d left", slots, u.ran.Load(), served.Load(), left.Load())
		}
		waitIdle(t, g)
	}
}

// TestGrouperOutlivesAPanic verifies that a panic while serving a single caller reaches that caller, and that
// its slot and its row are free again.
func TestGrouperOutlivesAPanic(t *testing.T) {
	u := &rowsInFlight{T: t, rows: map[Key]bool{}}
	r := u.rounds(1)
	single := r.Lone
	first := true
	r.Lone = func(ctx context.Context, c Command) error {
		if first {
			first = false
			panic("panic of a user hook")
		}
		return single(ctx, c)
	}
	g := NewGrouper(r)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach its caller")
			}
		}()
		_ = g.Do(context.Background(), testCommand(1))
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := g.Do(ctx, testCommand(1)); err != nil {
		t.Errorf("next caller got error %v", err)
	}
	waitIdle(t, g)
}

// waitIdle waits until the last slot is free and fails if anything is left behind.
func waitIdle(t *testing.T, g *Grouper) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		g.mu.Lock()
		busy, waiting, queues, reserved := g.busy, len(g.waiting), len(g.queues), len(g.reserved)
		g.mu.Unlock()
		if busy+waiting+queues+reserved == 0 {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("resources leaked: %d slots, %d queues waiting, %d queues, %d rows", busy, waiting, queues, reserved)
		case <-time.After(time.Millisecond):
		}
	}
}
