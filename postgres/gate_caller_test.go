package postgres_test

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/postgres"
)

// caller is an engine on a gated store. It records what it runs, and can be stopped before it
// commits.
type caller struct {
	gate    *postgres.Gated
	engine  *holdfast.Engine
	made    []string
	commits int
	hold    *stop
	part    *part
}

// part is a call that is made in parts.
type part struct {
	until  int // the number of commits, 0 for all
	paused chan struct{}
	goOn   chan int
	done   chan string
	answer string
	over   bool
}

// until continues a call until it has committed so often, or to its end, and then returns its
// result.
func (c *caller) until(ctx context.Context, f call, commits string) string {
	n, _ := strconv.Atoi(commits)
	switch {
	case commits == "0" || c.part != nil && c.part.over:
	case c.part == nil:
		c.commits, c.part = 0, &part{until: n, paused: make(chan struct{}), goOn: make(chan int)}
		c.part.done = c.start(ctx, f)
	default:
		c.part.goOn <- n
	}
	if commits == "0" {
		return ""
	}
	if !c.part.over {
		select {
		case <-c.part.paused:
			return ""
		case c.part.answer = <-c.part.done:
			c.part.over = true
		}
	}
	answer := c.part.answer
	if commits == "" {
		c.part = nil
	}
	return answer
}

// committed pauses a call that is made in parts.
func (c *caller) committed() {
	if p := c.part; p != nil && c.commits == p.until {
		p.paused <- struct{}{}
		p.until = <-p.goOn
	}
}

type stop struct {
	n      int // at which commit
	at, on chan struct{}
}

func newCaller(t *testing.T, url string) *caller {
	c := new(caller)
	c.engine = holdfasttest.OpenOn(t, store.HandleDatabase(callersDatabase{store.DatabaseOf(postgres.URL(url)), c}))
	return c
}

func (c *caller) holdAt(n int) *stop {
	c.commits, c.hold = 0, &stop{n, make(chan struct{}), make(chan struct{})}
	return c.hold
}

func (c *caller) start(ctx context.Context, f call) chan string {
	done := make(chan string, 1)
	go func() { done <- c.do(ctx, f) }()
	return done
}

// do makes a call, and returns its result as text.
func (c *caller) do(ctx context.Context, f call) string {
	answer, err := f(ctx, c.engine)
	if err != nil {
		return string(fault.CodeOf(err)) + ": " + err.Error()
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// commit stops a caller.
func (c *caller) commit() {
	if c.hold != nil && c.commits == c.hold.n {
		close(c.hold.at)
		<-c.hold.on
	}
	c.commits++
}

type callersDatabase struct {
	store.Database
	*caller
}

func (d callersDatabase) Open(ctx context.Context, o store.Options) (store.Store, error) {
	s, err := d.Database.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	d.gate = postgres.NewGated(s)
	return callersStore{d.gate, d.caller}, nil
}

type callersStore struct {
	*postgres.Gated
	caller *caller
}

func (s callersStore) Do(ctx context.Context, c store.Command) error {
	if c.Decl().Aside { // it is no call of the caller
		return s.Gated.Do(ctx, c)
	}
	s.caller.made = append(s.caller.made, c.Decl().Name)
	if _, pair := c.(*store.Pair); pair {
		s.caller.made = append(s.caller.made, "idempotency.probe", "idempotency.record")
	}
	if s.Forms(c.Decl().Name) == nil {
		return s.Gated.Do(ctx, c)
	}
	if s.caller.hold == nil {
		err := s.Gated.Do(ctx, c)
		s.caller.commits++
		s.caller.committed()
		return err
	}
	return s.Gated.Update(ctx, func(ctx context.Context, conn store.Conn) error {
		err := conn.Run(ctx, c)
		s.caller.commit()
		return err
	})
}

func (s callersStore) Update(ctx context.Context, f func(context.Context, store.Conn) error) error {
	err := s.Gated.Update(ctx, func(ctx context.Context, conn store.Conn) error {
		err := f(ctx, callersConn{conn, s.caller})
		s.caller.commit()
		return err
	})
	s.caller.committed()
	return err
}

type callersConn struct {
	store.Conn
	caller *caller
}

func (c callersConn) Unwrap() store.Conn { return c.Conn }

func (c callersConn) Run(ctx context.Context, cmd store.Command) error {
	c.caller.made = append(c.caller.made, cmd.Decl().Name)
	return c.Conn.Run(ctx, cmd)
}
