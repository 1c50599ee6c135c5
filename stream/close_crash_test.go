package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/streamclose"
	"github.com/holdfast-go/holdfast/stream"
)

// cases is what a client knows, by workspace, of which each case has its own.
type cases[K any] struct{ all sync.Map }

func (c *cases[K]) of(ctx context.Context) *K {
	k, _ := c.all.LoadOrStore(store.WorkspaceOf(ctx), new(K))
	return k.(*K)
}

// closing is a stream that is filled, closed and appended to, with a crash
// anywhere.
type closing struct {
	holdfasttest.World // what is exported
	cases[closingCase]
	mode    stream.CloseMode
	exports bool
}

type closingCase struct {
	exported int            // events that the last export saw
	whole    bool           // an export has seen all
	closed   *stream.Closed // what a close was told first
}

// TestCrashOfClose verifies, at every point and for every fault, that a close
// that is repeated until it is answered leaves the stream closed once, the same
// way for each who asks; that an export has seen every event before anything is
// removed; that a close that failed, or died, leaves a stream that can be closed
// after its hold has run out; and that nothing stays held.
func TestCrashOfClose(t *testing.T) {
	for _, mode := range []stream.CloseMode{stream.Archive, stream.Tombstone, stream.Restart} {
		for _, exports := range []bool{false, true} {
			c := &closing{mode: mode, exports: exports}
			name := string(mode)
			if exports {
				name += " with export"
			}
			holdfasttest.Crash(t, holdfasttest.Scenario{Name: name, Do: c.do, Recover: settle, Check: c.check})
		}
	}
}

// settle does the work of a janitor after a while: it releases expired leases of streams.
func settle(ctx context.Context, hf *holdfast.Engine) error {
	_, err := holdfasttest.Settle(ctx, hf)
	return err
}

func (c *closing) do(ctx context.Context, hf *holdfast.Engine) error {
	k := c.of(ctx)
	_, err := stream.Append(ctx, hf, "s", stream.None, stream.Event{Name: "a"}, stream.Event{Name: "b"}, stream.Event{Name: "c"})
	if code := fault.CodeOf(err); err != nil && code != fault.Concurrency && code != fault.StreamClosed {
		return err
	}
	var o []stream.CloseOption
	if c.mode == stream.Restart {
		o = append(o, stream.Snapshot([]byte(`{"n":3}`)), stream.ExpectVersion(2))
	}
	if c.exports {
		k.exported = 0
		o = append(o, stream.Export(func(ctx context.Context, page []stream.Event) error {
			k.exported += len(page)
			k.whole = k.exported == 3
			return c.Call(ctx, "export", "")
		}))
	}
	closed, err := stream.Close(ctx, hf, "s", c.mode, o...)
	if err != nil {
		return err
	}
	if k.closed == nil {
		k.closed = &closed
	}
	if closed != *k.closed {
		return fmt.Errorf("first close returned %+v, second %+v", *k.closed, closed)
	}
	return nil
}

func (c *closing) check(ctx context.Context, hf *holdfast.Engine) error {
	k := c.of(ctx)
	want := map[stream.CloseMode]stream.Closed{
		stream.Archive:   {Stream: "s", Mode: c.mode, First: 0, Last: 2},
		stream.Tombstone: {Stream: "s", Mode: c.mode, First: 3, Last: 3},
		stream.Restart:   {Stream: "s", Mode: c.mode, First: 3, Last: 3},
	}[c.mode]
	if k.closed == nil || *k.closed != want {
		return fmt.Errorf("close returned %+v, want %+v", k.closed, want)
	}
	if c.exports && !k.whole {
		return fmt.Errorf("the last export got only %d events", k.exported)
	}
	all, err := holdfast.Collect(stream.Read(ctx, hf, "s", 0))
	if err != nil || len(all) != int(want.Last-want.First)+1 || all[0].Version != want.First {
		return fmt.Errorf("stream has %+v: %w", all, err)
	}
	_, err = stream.Append(ctx, hf, "s", stream.Any, stream.Event{Name: "later"})
	if open := c.mode == stream.Restart; open && err != nil || !open && fault.CodeOf(err) != fault.StreamClosed {
		return fmt.Errorf("append to the closed stream: %w", err)
	}
	return nil
}

// restarting is a client that appends, reads, appends, restarts what it has read and
// appends again, with a crash anywhere. It knows what was acknowledged; after a crash
// it repeats the close that it had begun.
type restarting struct {
	holdfasttest.World // what is exported
	cases[restartingCase]
	exports bool
}

type restartingCase struct {
	appends int
	acked   []string             // names of events
	begun   []stream.CloseOption // the close that was not refused yet
	covers  stream.Version       // by that close
	closed  *stream.Closed       // what it was told first
}

// TestCrashOfARestart verifies, at every point and for every fault, that every append
// that was acknowledged is in the snapshot or behind it, and that a restart that is
// repeated, before and after such an append, has one answer.
func TestCrashOfARestart(t *testing.T) {
	for name, exports := range map[string]bool{"at once": false, "with export": true} {
		c := &restarting{exports: exports}
		holdfasttest.Crash(t, holdfasttest.Scenario{Name: name, Do: c.do, Recover: settle, Check: c.check, Pairs: true})
	}
}

func (c *restarting) do(ctx context.Context, hf *holdfast.Engine) error {
	k := c.of(ctx)
	if k.closed == nil {
		if err := k.append(ctx, hf); err != nil {
			return err
		}
		if err := c.read(ctx, hf, k); err != nil {
			return err
		}
		if err := k.append(ctx, hf); err != nil {
			return err
		}
	}
	for range 2 {
		if err := c.close(ctx, hf, k); err != nil {
			return err
		}
		if err := k.append(ctx, hf); err != nil {
			return err
		}
	}
	return nil
}

// append adds an event of a new name, and notes that it was acknowledged.
func (k *restartingCase) append(ctx context.Context, hf *holdfast.Engine) error {
	name := fmt.Sprint("e", k.appends)
	k.appends++
	_, err := stream.Append(ctx, hf, "s", stream.Any, stream.Event{Name: name})
	if err == nil {
		k.acked = append(k.acked, name)
	}
	return err
}

// read makes a snapshot of the names of all events, unless one is there whose close
// may have happened.
func (c *restarting) read(ctx context.Context, hf *holdfast.Engine, k *restartingCase) error {
	if k.begun != nil {
		return nil
	}
	all, err := holdfast.Collect(stream.Read(ctx, hf, "s", 0))
	if err != nil {
		return err
	}
	names, err := eventNames(all)
	if err != nil {
		return err
	}
	snapshot, err := json.Marshal(names)
	k.covers = all[len(all)-1].Version
	k.begun = []stream.CloseOption{stream.ExpectVersion(k.covers), stream.Snapshot(snapshot)}
	if c.exports {
		k.begun = append(k.begun, stream.Export(func(ctx context.Context, _ []stream.Event) error { return c.Call(ctx, "export", "") }))
	}
	return err
}

func (c *restarting) close(ctx context.Context, hf *holdfast.Engine, k *restartingCase) error {
	closed, err := stream.Close(ctx, hf, "s", stream.Restart, k.begun...)
	if errors.Is(err, holdfast.ErrConcurrency) && k.closed == nil { // as it is told
		k.begun = nil
		if err := c.read(ctx, hf, k); err != nil {
			return err
		}
		closed, err = stream.Close(ctx, hf, "s", stream.Restart, k.begun...)
	}
	if err != nil {
		return err
	}
	if k.closed == nil {
		k.closed = &closed
	}
	if closed != *k.closed || closed.First != k.covers+1 || closed.Last != closed.First {
		return fmt.Errorf("first close returned %+v, second %+v", *k.closed, closed)
	}
	return nil
}

// eventNames are the names of events, with those in a snapshot.
func eventNames(all []stream.Event) (names []string, err error) {
	for _, e := range all {
		if e.Name == streamclose.SnapshotEvent {
			err = errors.Join(err, json.Unmarshal(e.Data, &names))
			continue
		}
		names = append(names, e.Name)
	}
	return names, err
}

func (c *restarting) check(ctx context.Context, hf *holdfast.Engine) error {
	k := c.of(ctx)
	all, err := holdfast.Collect(stream.Read(ctx, hf, "s", 0))
	if err != nil {
		return err
	}
	names, err := eventNames(all)
	if len(all) == 0 || all[0].Name != streamclose.SnapshotEvent || all[0].Version != k.closed.First {
		err = errors.Join(err, fmt.Errorf("close returned %+v, but the stream has %+v", k.closed, all))
	}
	for _, name := range k.acked {
		if !slices.Contains(names, name) {
			err = errors.Join(err, fmt.Errorf("%s was acknowledged, but is missing: got %v", name, names))
		}
	}
	return err
}

// TestCrashKeepsWhatIsNotExported verifies, at every point and for every fault,
// that a stream whose export fails each time keeps its events and takes new ones,
// at the latest when its closer's hold has run out.
func TestCrashKeepsWhatIsNotExported(t *testing.T) {
	full := errors.New("the disk is full")
	holdfasttest.Crash(t, holdfasttest.Scenario{
		Do: func(ctx context.Context, hf *holdfast.Engine) error {
			_, err := stream.Append(ctx, hf, "s", stream.None, stream.Event{Name: "a"})
			if err != nil && !errors.Is(err, holdfast.ErrConcurrency) && fault.CodeOf(err) != fault.StreamClosed {
				return err
			}
			_, err = stream.Close(ctx, hf, "s", stream.Tombstone,
				stream.Export(func(context.Context, []stream.Event) error { return full }))
			return err
		},
		Accepts: []error{full, holdfast.ErrConflict},
		Recover: func(ctx context.Context, hf *holdfast.Engine) error { // without a janitor: time is enough
			return store.Shift(ctx, engine.Of(hf), lease.DefaultDuration+time.Second)
		},
		Check: func(ctx context.Context, hf *holdfast.Engine) error {
			last, err := stream.Append(ctx, hf, "s", stream.Any, stream.Event{Name: "b"})
			if err != nil || last != 1 {
				return fmt.Errorf("append: got version %d, want 1: %w", last, err)
			}
			all, err := holdfast.Collect(stream.Read(ctx, hf, "s", 0))
			if err != nil || len(all) != 2 {
				return fmt.Errorf("stream has %+v, want 2 events: %w", all, err)
			}
			return nil
		},
	})
}
