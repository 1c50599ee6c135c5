package effects

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strict"
)

// Unknown is the state of a late call that returned without saying whether it happened.
const Unknown State = "unknown"

// LateCall is a call of an effect by a holder that has lost its lease, or lost it before it could
// record the outcome.
type LateCall struct {
	Name    string
	Ordinal int
	State   State // Done or Unknown
	Result  []byte
}

// Contradiction is a late call as it is stored. The journal of the operation may say otherwise: a
// person may have said that the effect did not happen, or another attempt may have called again.
type Contradiction struct {
	ID        string
	Operation string
	Subject   string // what the operation is of
	Name      string
	Ordinal   int
	Epoch     int64 // of the late holder
	State     State // Done or Unknown
	Result    []byte
	Node      string // the node that recorded it
	At        time.Time
}

// Holder is a holder that reports late.
type Holder struct {
	Operation string
	Subject   string
	Epoch     int64
	Node      string
}

type lateArgs struct {
	Holder
	calls []LateCall
}

type contradictionArgs struct {
	operation, after string
	limit            int
}

type seenArgs struct {
	operation, by string
	ids           []string
}

var (
	lateVerb = store.NewVerb(store.Decl{Name: "effects.late", Lane: store.Work}, nil,
		func(a lateArgs, args *store.Args) {
			args.Text(a.Operation)
			args.Int(a.Epoch)
			args.Text(a.Subject)
			args.Text(a.Node)
			args.Text(callsJSON(a.calls))
		},
		func(n *int, row store.Row) error {
			var one int
			*n++
			return row.Scan(&one)
		})
	contradictionsVerb = store.NewVerb(store.Decl{Name: "effects.contradictions", Lane: store.Read}, nil,
		func(a contradictionArgs, args *store.Args) {
			args.Text(a.operation)
			args.Text(a.after)
			args.Int(int64(a.limit))
		},
		func(all *[]Contradiction, row store.Row) error {
			var c Contradiction
			err := row.Scan(&c.ID, &c.Operation, &c.Subject, &c.Name, &c.Ordinal, &c.Epoch, (*string)(&c.State), &c.Result, &c.Node, &c.At)
			c.At = c.At.UTC()
			*all = append(*all, c)
			return err
		})
	seenVerb = store.NewVerb(store.Decl{Name: "effects.seen", Lane: store.Work}, nil,
		func(a seenArgs, args *store.Args) {
			args.Text(a.operation)
			args.Text(a.by)
			ids, _ := json.Marshal(a.ids) // of strings, it does not fail
			args.Text(string(ids))
		},
		func(n *int, row store.Row) error {
			var one int
			*n++
			return row.Scan(&one)
		})
)

func callsJSON(calls []LateCall) string {
	type call struct {
		ID      string          `json:"i"`
		Name    string          `json:"n"`
		Ordinal int             `json:"o"`
		State   State           `json:"s"`
		Result  json.RawMessage `json:"r"`
	}
	list := make([]call, len(calls))
	for i, c := range calls {
		list[i] = call{store.NewID().String(), c.Name, c.Ordinal, c.State, c.Result}
		if len(c.Result) == 0 {
			list[i].Result = []byte("null")
		}
	}
	text, _ := json.Marshal(list) // results were checked when they were made
	return string(text)
}

// Late stores calls of a holder that has lost its lease. It changes no operation. A call that the
// journal has with the same result is no contradiction and is not stored, nor is one of unknown
// outcome that may be repeated under its key. Storing a call again changes nothing. While the
// database does not answer it is tried again for some seconds, also after the end of ctx. Calls that
// cannot be stored are logged.
func Late(ctx context.Context, d store.Doer, at store.Place, h Holder, calls []LateCall, log *slog.Logger) {
	if len(calls) == 0 {
		return
	}
	ctx, cancel := beyond(ctx)
	defer cancel()
	n, err := lateVerb.DoAt(ctx, d, at, lateArgs{h, calls})
	for pause := 20 * time.Millisecond; retryable(err) && clock.Wait(ctx, pause) == nil; pause *= 2 {
		n, err = lateVerb.DoAt(ctx, d, at, lateArgs{h, calls})
	}
	log = log.With("workspace", at.Workspace, "operation", h.Operation, "subject", h.Subject, "epoch", h.Epoch)
	switch {
	case err != nil:
		log.Error("calls made without a lease could not be stored", "calls", callsJSON(calls), "error", err)
	case n > 0:
		log.Warn("an effect was called without a lease, or its outcome was not recorded in time: see the contradictions of the operation", "calls", n)
	}
}

func retryable(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.Unavailable || code == fault.OutcomeUnknown || errors.Is(err, context.Canceled)
}

// Contradictions returns the late calls that nobody has acknowledged, of up to limit operations
// behind one, in the order of their operations; or of one operation.
func Contradictions(ctx context.Context, d store.Doer, at store.Place, operation, after string, limit int) ([]Contradiction, error) {
	return contradictionsVerb.DoAt(ctx, d, at, contradictionArgs{operation, after, limit})
}

// Acknowledge records that a person has seen contradictions of an operation. Acknowledging again
// changes nothing.
func Acknowledge(ctx context.Context, d store.Doer, at store.Place, operation, by string, ids []string) error {
	if len(ids) == 0 {
		return fault.New(fault.Validation, "name the contradictions that were seen, by their ids").With("pointer", "/contradictions")
	}
	for _, id := range ids {
		if err := strict.Text("contradiction", id, 64); err != nil {
			return err
		}
	}
	n, err := seenVerb.DoAt(ctx, d, at, seenArgs{operation, by, ids})
	if err == nil && n < len(ids) {
		err = fault.New(fault.NotFound, "the operation %q has %d of these %d contradictions", operation, n, len(ids))
	}
	return err
}
