package pgtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Reuse defines how a database is reset after a test, so that the next test can use it: cloning a
// database, connecting to it and planning every statement again takes the server longer than most
// tests.
type Reuse struct {
	Options
	// PrepareWipe runs once, on the connection that runs Wipe.
	PrepareWipe string
	// Wipe removes what a test has left, and returns how many sessions it had to end for that.
	Wipe string
	// Shape is a query that returns one text, which no test may change. A database whose text
	// differs afterwards is dropped.
	Shape string
}

// A Reusable is a database that tests of this process use one after the other.
type Reusable struct {
	URL string
	// Resource is for the user, who stores open resources here. It is closed before the database is
	// dropped, and if a session was ended: it may belong to the resource, whose next use would fail.
	Resource interface{ Close() error }

	how   *Reuse
	name  string
	conn  *pgx.Conn
	shape string
}

var reusable struct {
	mu   sync.Mutex
	free map[string][]*Reusable // by template
}

// Take returns a reset database that no other test has.
func Take(ctx context.Context, how *Reuse) (*Reusable, error) {
	reusable.mu.Lock()
	all := reusable.free[how.Template]
	if n := len(all); n > 0 {
		r := all[n-1]
		reusable.free[how.Template] = all[:n-1]
		reusable.mu.Unlock()
		return r, nil
	}
	reusable.mu.Unlock()
	return newReusable(ctx, how)
}

func newReusable(ctx context.Context, how *Reuse) (*Reusable, error) {
	url, drop, err := Database(ctx, how.Options)
	if err != nil {
		return nil, err
	}
	r := &Reusable{URL: url, how: how}
	if r.conn, err = pgx.Connect(ctx, url); err == nil {
		_, err = r.conn.Exec(ctx, how.PrepareWipe)
	}
	if err == nil {
		err = r.conn.QueryRow(ctx, how.Shape).Scan(&r.shape)
	}
	if err != nil {
		drop()
		return nil, fmt.Errorf("reuse: %w", err)
	}
	r.name = r.conn.Config().Database
	return r, nil
}

// Return gives the database back. A database that cannot be reset is dropped.
func (r *Reusable) Return() {
	if err := r.wipe(); err != nil {
		r.drop()
		return
	}
	reusable.mu.Lock()
	defer reusable.mu.Unlock()
	if reusable.free == nil {
		reusable.free = make(map[string][]*Reusable)
	}
	reusable.free[r.how.Template] = append(reusable.free[r.how.Template], r)
}

func (r *Reusable) wipe() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var ended int
	if err := r.conn.QueryRow(ctx, r.how.Wipe, pgx.QueryExecModeCacheStatement).Scan(&ended); err != nil {
		return err
	}
	if ended > 0 && r.Resource != nil {
		if err := r.Resource.Close(); err != nil {
			return err
		}
	}
	var shape string
	if err := r.conn.QueryRow(ctx, r.how.Shape).Scan(&shape); err != nil {
		return err
	}
	if shape != r.shape {
		return errors.New("a test has changed the schema")
	}
	return nil
}

func (r *Reusable) drop() {
	if r.Resource != nil {
		_ = r.Resource.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = r.conn.Close(ctx)
	dropDatabase(r.name)
}

// DropReusable drops the databases that wait for their next test. A test program calls it after its
// tests.
func DropReusable() {
	defer CloseIdle()
	reusable.mu.Lock()
	all := reusable.free
	reusable.free = nil
	reusable.mu.Unlock()
	for _, some := range all {
		for _, r := range some {
			r.drop()
		}
	}
}
