// Package events implements the event log that every capability writes to: streams of events with versions 0,
// 1, 2 … without a gap.
//
// The head row of a stream decides every append. It is locked before it is compared, so of two appends that
// expect the same version one wins and the other gets the version it lost to. A user's streams have a head row
// of their own. The head of a stream that begins with "$" is the row of the object whose history it is, and
// only the verb that changes that row writes to the stream.
//
// This package is the implementation; package stream is its public face.
package events

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Limits of the input.
const (
	MaxName  = 255
	MaxBatch = 1000 // events per append
	MaxRead  = 1000 // events per read
	// MaxBytes limits the total data of the events of one append.
	MaxBytes = 4 << 20
)

// None is the version of a stream that does not exist.
const None int64 = -1

// Meta is the origin of an event. It is only passed on, and never used to recognize a repeated request.
type Meta struct {
	Correlation string `arg:"correlation,null"`
	Causation   string `arg:"causation,null"`
	Actor       string `arg:"actor,null"`
}

// Event is one event of a stream.
type Event struct {
	ID      store.ID
	Stream  string
	Version int64
	Name    string
	Data    []byte // JSON
	// Subject is the subject whose key encrypts the data, or "".
	Subject string
	At      time.Time
	Meta
}

// AppendArgs is an append. A nil ExpectVersion accepts any version; [None] requires that the stream does not
// exist.
type AppendArgs struct {
	Stream        string
	ExpectVersion *int64
	Events        []Event
}

// AppendResult is the state of the stream after the append or, if it was refused, as it was found.
type AppendResult struct {
	Applied bool
	Last    int64
	Closed  bool // refused because the stream is closed
	At      time.Time
}

var appendVerb = store.NewVerb(store.Decl{Name: "events.append", Group: true, Events: store.StreamEvents},
	func(a AppendArgs) []string { return []string{"stream/" + a.Stream} },
	func(a AppendArgs, args *store.Args) {
		args.Text("stream", a.Stream)
		args.MaybeInt("want", a.ExpectVersion)
		args.Int("size", int64(len(a.Events)))
		store.Rows(args, a.Events, func(n int, e Event, row *store.Args) {
			row.Int("n", int64(n))
			row.Text("name", e.Name)
			row.Text("data", string(e.Data))
			row.MaybeText("subject", e.Subject)
			BindMeta(row, e.Meta)
		})
	},
	store.Outcome(func(r *AppendResult) (*bool, []any) { return &r.Applied, []any{&r.Last, &r.Closed, &r.At} })).RecoverWith(func(_ AppendArgs, m store.CommitProof) AppendResult {
	return AppendResult{Applied: true, Last: m.Version, At: m.At}
}).Emits(func(a AppendArgs) store.Emission {
	e := store.Emission{Stream: a.Stream}
	for i := range a.Events {
		e.Names = append(e.Names, a.Events[i].Name)
	}
	return e
})

// BindMeta binds the three columns of an event's origin.
func BindMeta(a *store.Args, m Meta) {
	a.MaybeText("correlation", m.Correlation)
	a.MaybeText("causation", m.Causation)
	a.MaybeText("actor", m.Actor)
}

// Append adds events to a stream and returns its last version. If the stream is not at the expected version,
// nothing is written and the error is a [fault.Concurrency] with expectedVersion and lastVersion.
func Append(ctx context.Context, d store.Doer, a AppendArgs) (int64, error) {
	last, _, err := AppendAt(ctx, d, a)
	return last, err
}

// AppendAt is like [Append], and also returns the time of the events.
func AppendAt(ctx context.Context, d store.Doer, a AppendArgs) (last int64, at time.Time, err error) {
	if err := checkAppend(&a); err != nil {
		return 0, at, err
	}
	r, err := appendVerb.Do(ctx, d, a)
	switch {
	case err != nil:
		return 0, at, err
	case r.Closed:
		err = Closed(a.Stream, r.Last)
	case !r.Applied:
		err = Moved("stream "+a.Stream, *a.ExpectVersion, r.Last)
	}
	return r.Last, r.At.UTC(), refusals.Note(ctx, d, refusals.Try{Stream: a.Stream, Action: "append", Actor: a.Events[0].Actor}, err)
}

// Closed returns the refusal of an append to a stream that is closed or being closed.
func Closed(stream string, last int64) *fault.Error {
	return fault.New(fault.StreamClosed, "stream %q is closed or being closed at version %d and accepts no events: append to another stream", stream, last).
		With("lastVersion", last)
}

// Moved returns the refusal of a write that expected another version.
func Moved(what string, expected, last int64) *fault.Error {
	f := fault.New(fault.Concurrency, "%s is at version %d, expected %d: read it again and retry", what, last, expected)
	switch {
	case last == None:
		f = fault.New(fault.Concurrency, "%s does not exist, but version %d was expected: read it again and retry", what, expected)
	case expected == None:
		f = fault.New(fault.Concurrency, "%s already exists at version %d, but was expected not to exist: read it again and retry", what, last)
	}
	return f.With("expectedVersion", expected).With("lastVersion", last)
}

func checkAppend(a *AppendArgs) error {
	if err := strictjson.Text("stream", a.Stream, MaxName); err != nil {
		return err
	}
	if strings.HasPrefix(a.Stream, "$") {
		return fault.New(fault.Forbidden, "stream %q is reserved, because names that begin with $ are those of the histories that Holdfast writes: append to another stream", a.Stream)
	}
	if a.ExpectVersion != nil && *a.ExpectVersion < None {
		return fault.New(fault.Validation, "the expected version must be at least -1 (the stream must not exist), got %d", *a.ExpectVersion)
	}
	if n := len(a.Events); n == 0 || n > MaxBatch {
		return fault.New(fault.Validation, "an append must have 1 to %d events, got %d", MaxBatch, n)
	}
	total := 0
	for i := range a.Events {
		if err := checkEvent(&a.Events[i]); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		total += len(a.Events[i].Data)
	}
	if total > MaxBytes {
		return fault.New(fault.PayloadTooLarge, "this append's events have %d bytes of data, but at most %d are allowed: split the append", total, MaxBytes)
	}
	return nil
}

func checkEvent(e *Event) error {
	if e.Data == nil {
		e.Data = []byte("{}")
	}
	return cmp.Or(strictjson.Text("name", e.Name, MaxName), strictjson.Check(e.Data), CheckMeta(e.Meta))
}

// CheckMeta refuses an origin that cannot be stored.
func CheckMeta(m Meta) error {
	for _, f := range []struct{ name, value string }{
		{"correlation", m.Correlation}, {"causation", m.Causation}, {"actor", m.Actor},
	} {
		if f.value == "" {
			continue
		}
		if err := strictjson.Text(f.name, f.value, MaxName); err != nil {
			return err
		}
	}
	return nil
}
