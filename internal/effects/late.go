package effects

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
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

	known Entry // what the journal has of the effect
}

// Holder is a holder that reports late.
type Holder struct {
	Operation string `arg:"operation"`
	Subject   string `arg:"subject"`
	Epoch     int64  `arg:"epoch"`
	Node      string `arg:"node"`
}

type lateArgs struct {
	Holder
	calls string `arg:"calls"`
}

type contradictionArgs struct {
	operation string `arg:"operation"`
	after     string `arg:"after"`
	limit     int    `arg:"limit"`
}

type seenArgs struct {
	operation string   `arg:"operation"`
	by        string   `arg:"by"`
	IDs       []string `arg:"ids"`
}

var (
	lateVerb           = store.VerbOf[lateArgs](store.Decl{Name: "effects.late", Lane: store.Work}, nil, store.CountRows)
	contradictionsVerb = store.VerbOf[contradictionArgs](store.Decl{Name: "effects.contradictions", Lane: store.Read}, nil,
		store.Each(func(c *Contradiction) []any {
			return []any{&c.ID, &c.Operation, &c.Subject, &c.Name, &c.Ordinal, &c.Epoch, (*string)(&c.State), &c.Result, &c.Node, &c.At, (*string)(&c.known.State), &c.known.Result, &c.known.Epoch, (*string)(&c.known.Policy)}
		}))
	seenVerb = store.VerbOf[seenArgs](store.Decl{Name: "effects.seen", Lane: store.Work}, nil, store.CountRows)
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
		list[i] = call{store.NewID().String(), c.Name, c.Ordinal, c.State, orNull(c.Result)}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(list) // results were checked when they were made
	return text.String()
}

func orNull(result []byte) []byte {
	if len(result) == 0 {
		return []byte("null")
	}
	return result
}

// agrees says whether the journal has what a late call says: the same result, of the same holder or of an effect that
// may be repeated under its key. Of a body, done is all that it says.
func agrees(e Entry, epoch int64, c LateCall) bool {
	return c.State == Done && e.State == Done && (e.Epoch == epoch || e.Policy == Retry) && (c.Name == Body || strictjson.Equal(orNull(e.Result), orNull(c.Result)))
}

// contradicting returns the calls that the journal does not have. One of unknown outcome that may be repeated under
// its key is none, unless it is known not to have happened. Of one without an effect nothing is known.
func contradicting(journal []Entry, epoch int64, calls []LateCall) (left []LateCall) {
	for _, c := range calls {
		i := slices.IndexFunc(journal, func(e Entry) bool { return e.Name == c.Name && e.Ordinal == c.Ordinal })
		if i < 0 || agrees(journal[i], epoch, c) || c.State == Unknown && journal[i].Policy == Retry && journal[i].State != NotDone {
			continue
		}
		left = append(left, c)
	}
	return left
}

// Late stores calls of a holder that has lost its lease. It changes no operation. A call that the
// journal has with the same result is no contradiction and is not stored, nor is one of unknown
// outcome that may be repeated under its key. Storing a call again changes nothing. While the
// database does not answer it is tried again for some seconds, also after the end of ctx. Calls that
// cannot be stored are logged.
func Late(ctx context.Context, d store.Doer, at store.Partition, h Holder, calls []LateCall, log *slog.Logger) {
	if len(calls) == 0 {
		return
	}
	ctx, cancel := beyond(ctx)
	defer cancel()
	n, err := late(ctx, d, at, h, calls)
	for pause := 20 * time.Millisecond; retryable(err) && clock.Wait(ctx, pause) == nil; pause *= 2 {
		n, err = late(ctx, d, at, h, calls)
	}
	log = log.With("workspace", at.Workspace, "operation", h.Operation, "subject", h.Subject, "epoch", h.Epoch)
	switch {
	case err != nil:
		log.Error("calls made without a lease could not be stored", "calls", callsJSON(calls), "error", err)
	case n > 0:
		log.Warn("an effect was called without a lease, or its outcome was not recorded in time: see the contradictions of the operation", "calls", n)
	}
}

func late(ctx context.Context, d store.Doer, at store.Partition, h Holder, calls []LateCall) (int, error) {
	journal, err := List(ctx, d, at, h.Operation)
	if err != nil {
		return 0, err
	}
	calls = contradicting(journal, h.Epoch, calls)
	if len(calls) == 0 {
		return 0, nil
	}
	return lateVerb.DoAt(ctx, d, at, lateArgs{h, callsJSON(calls)})
}

func retryable(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.Unavailable || code == fault.OutcomeUnknown || errors.Is(err, context.Canceled)
}

// Contradictions returns the late calls that nobody has acknowledged, and that the journal does not have by now, of
// up to limit operations behind one, in the order of their operations; or of one operation.
func Contradictions(ctx context.Context, d store.Doer, at store.Partition, operation, after string, limit int) (all []Contradiction, err error) {
	for operations := 0; ; {
		page, err := contradictionsVerb.DoAt(ctx, d, at, contradictionArgs{operation, after, limit - operations})
		if err != nil || len(page) == 0 {
			return all, err
		}
		last := ""
		for _, c := range page {
			after = c.Operation
			if agrees(c.known, c.Epoch, LateCall{c.Name, c.Ordinal, c.State, c.Result}) {
				continue
			}
			if all = append(all, c); c.Operation != last {
				last, operations = c.Operation, operations+1
			}
		}
		if operations >= limit || operation != "" {
			return all, nil
		}
	}
}

// Acknowledge records that a person has seen contradictions of an operation. Acknowledging again
// changes nothing.
func Acknowledge(ctx context.Context, d store.Doer, at store.Partition, operation, by string, ids []string) error {
	if len(ids) == 0 {
		return fault.New(fault.Validation, "name the contradictions that were seen, by their ids").With("pointer", "/contradictions")
	}
	for _, id := range ids {
		if err := strictjson.Text("contradiction", id, 64); err != nil {
			return err
		}
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	n, err := seenVerb.DoAt(ctx, d, at, seenArgs{operation, by, ids})
	if err == nil && n < len(ids) {
		err = fault.New(fault.NotFound, "the operation %q has not all of these contradictions: none was acknowledged", operation)
	}
	return err
}
