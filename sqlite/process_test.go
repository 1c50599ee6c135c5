package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

const appends = 100

// jobAppend appends to one stream that others append to as well.
func jobAppend(ctx context.Context, path, name string, begin func() error) error {
	hf, err := holdfast.Open(ctx, sqlite.File(path), quiet)
	if err != nil {
		return err
	}
	defer hf.Close()
	if err := begin(); err != nil {
		return err
	}
	for i := range appends {
		if _, err := stream.Append(ctx, hf, "shared", stream.Any, event(fmt.Sprintf("%s-%d", name, i), "")); err != nil {
			return fmt.Errorf("append %d: %w", i, err)
		}
	}
	return nil
}

// TestSeveralProcessesAppendToOneStreamWithoutAGap verifies that several processes share a file: of
// four that append to one stream at once none fails, every event exists once, versions have no gap,
// and each process's own events are in its order.
func TestSeveralProcessesAppendToOneStreamWithoutAGap(t *testing.T) {
	t.Parallel()
	path := dbPath(t)
	makeDatabase(t, path)
	all := make([]*testkit.Child, 4)
	for i := range all {
		all[i] = startChild(t, "append", path, fmt.Sprintf("p%d", i), nil)
	}
	for _, c := range all {
		c.Send("go")
	}
	for _, c := range all {
		c.Wait()
	}
	hf := openEngine(t, sqlite.File(path))
	names := wantGapless(t, hf, "shared")
	if len(names) != len(all)*appends {
		t.Errorf("got %d events, want %d", len(names), len(all)*appends)
	}
	next := make(map[string]int)
	for _, name := range names {
		process := name[:2]
		if want := fmt.Sprintf("%s-%d", process, next[process]); name != want {
			t.Fatalf("got %s, want %s", name, want)
		}
		next[process]++
	}
}

// jobLock holds the write lock until a line arrives.
func jobLock(ctx context.Context, path, _ string, begin func() error) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := begin(); err != nil {
		return err
	}
	return tx.Rollback()
}

// TestAWriteWaitsForAnotherProcessAsLongAsItsContext verifies that while another process holds the
// write lock a write waits no longer than its context, returns an error, and writes nothing; that
// reads succeed; and that writes succeed when the lock is released.
func TestAWriteWaitsForAnotherProcessAsLongAsItsContext(t *testing.T) {
	t.Parallel()
	path := holdfasttest.SQLite(t)
	hf := openEngine(t, sqlite.File(path))
	mustAppend(t, hf, "s", stream.None, "before")
	holder := startChild(t, "lock", path, "", nil)

	writes := map[string]func(context.Context) error{
		"a command": func(ctx context.Context) error {
			_, err := stream.Append(ctx, hf, "s", 0, event("late", ""))
			return err
		},
		"an update": func(ctx context.Context) error {
			return hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
				_, err := stream.Append(ctx, tx, "s", 0, event("late", ""))
				return err
			})
		},
		"an open": func(ctx context.Context) error {
			other, err := holdfast.Open(ctx, sqlite.File(path), quiet)
			if err == nil {
				other.Close()
			}
			return err
		},
	}
	for name, write := range writes {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		started := time.Now()
		err := write(ctx)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("%s: got %v, want context.DeadlineExceeded and ErrUnavailable", name, err)
		}
		if took := time.Since(started); took > 3*time.Second {
			t.Errorf("%s: a context of 300 ms ended after %v", name, took)
		}
	}
	if names := wantGapless(t, hf, "s"); len(names) != 1 {
		t.Errorf("a canceled write is stored: %v", names)
	}
	done := make(chan error, 1)
	go func() {
		_, err := stream.Append(t.Context(), hf, "s", 0, event("after", ""))
		done <- err
	}()
	holder.Send("go")
	holder.Wait()
	if err := <-done; err != nil {
		t.Errorf("write that waited for the lock: %v", err)
	}
	mustAppend(t, hf, "s", 1, "later")
}
