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
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Unknown is the state of a late call that returned without a known outcome.
const Unknown State = "unknown"

// LateCall is a call of an effect by a holder that has lost its lease, or lost it before it could record the
// outcome.
type LateCall struct {
	Name    string
	Ordinal int
	State   State // Done or Unknown; in a [Journal] also NotDone
	Result  []byte
}

// Contradiction is a stored late call. The journal of the operation may say otherwise: a person may have
// reported that the effect did not happen, or another attempt may have made the call again.
type Contradiction struct {
	ID        string
	Operation string
	Subject   string // the entity or run step of the operation
	Name      string
	Ordinal   int
	Epoch     int64 // epoch of the late holder
	State     State // Done or Unknown
	Result    []byte
	Node      string // the node that recorded it
	At        time.Time

	known Entry // the effect in the journal
}

// Holder identifies a holder that reports late.
type Holder struct {
	Operation string `arg:"operation"`
	Subject   string `arg:"subject"`
	Epoch     int64  `arg:"epoch"`
	Node      string `arg:"node"`
}

type recordLateCallsArgs struct {
	Holder
	calls string `arg:"calls"`
}

type contradictionArgs struct {
	operation string `arg:"operation"`
	after     string `arg:"after"`
	limit     int    `arg:"limit"`
}

type acknowledgeArgs struct {
	operation string   `arg:"operation"`
	by        string   `arg:"by"`
	IDs       []string `arg:"ids"`
}

var (
	recordLateCallsVerb = store.VerbOf[recordLateCallsArgs](store.Decl{Name: "effects.record_late_calls", Lane: store.Work}, nil, store.CountRows)
	contradictionsVerb  = store.VerbOf[contradictionArgs](store.Decl{Name: "effects.list_contradictions", Lane: store.Read}, nil,
		store.Each(func(c *Contradiction) []any {
			return []any{&c.ID, &c.Operation, &c.Subject, &c.Name, &c.Ordinal, &c.Epoch, (*string)(&c.State), &c.Result, &c.Node, &c.At, (*string)(&c.known.State), &c.known.Result, &c.known.Epoch, (*string)(&c.known.Policy)}
		}))
	acknowledgeVerb = store.VerbOf[acknowledgeArgs](store.Decl{Name: "effects.acknowledge_contradictions", Lane: store.Work}, nil, store.CountRows)
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

// agrees reports whether the journal agrees with a late call: it has the same result, from the same holder or
// of an effect that may be repeated under its key. For an opaque handler only Done is compared.
func agrees(e Entry, epoch int64, c LateCall) bool {
	return c.State == Done && e.State == Done && (e.Epoch == epoch || e.Policy == Retry) && (c.Name == Body || strictjson.Equal(orNull(e.Result), orNull(c.Result)))
}

// contradicting returns the calls that the journal does not confirm. A call of unknown outcome that may be
// repeated under its key is not a contradiction, unless the journal says that it did not happen. A call whose effect
// is not in the journal is ignored.
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

// Late stores the calls of a holder that has lost its lease. It changes no operation. A call that the journal
// has with the same result is not a contradiction and is not stored, nor is a call of unknown outcome that may
// be repeated under its key. Storing a call again changes nothing. While the database does not respond, it is
// retried for some seconds, even after the end of ctx. Calls that cannot be stored are logged.
func Late(ctx context.Context, d store.Doer, at store.Partition, h Holder, calls []LateCall, log *slog.Logger) {
	if len(calls) == 0 {
		return
	}
	ctx, cancel := withoutCancel(ctx)
	defer cancel()
	n, err := late(ctx, d, at, h, calls)
	for pause := 20 * time.Millisecond; retryable(err) && clock.Wait(ctx, pause) == nil; pause *= 2 {
		n, err = late(ctx, d, at, h, calls)
	}
	log = log.With("workspace", at.Workspace, "operation", h.Operation, "object", h.Subject, "epoch", h.Epoch)
	switch {
	case err != nil:
		log.Error("failed to store effect calls made after the lease was lost: compare these calls with the operation's effects", "calls", callsJSON(calls), "error", err)
	case n > 0:
		log.Warn("effect called or recorded after its lease was lost; see \"holdfast operations list --state contradicted\"", "count", n)
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
	return recordLateCallsVerb.DoAt(ctx, d, at, recordLateCallsArgs{h, callsJSON(calls)})
}

func retryable(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.Unavailable || code == fault.OutcomeUnknown || errors.Is(err, context.Canceled)
}

// Contradictions returns the late calls that are not acknowledged and that the journal still does not confirm:
// of one operation, or of up to limit operations after a given one, in the order of their operations.
func Contradictions(ctx context.Context, d store.Doer, operation, after string, limit int) (all []Contradiction, err error) {
	at, err := d.Partition(ctx, store.Read)
	if err != nil {
		return nil, err
	}
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

// Acknowledge records that a person has seen contradictions of an operation. Acknowledging again changes
// nothing.
func Acknowledge(ctx context.Context, d store.Doer, at store.Partition, operation, by string, ids []string) error {
	if len(ids) == 0 {
		return fault.New(fault.Validation, "contradictions must not be empty: list the ids to acknowledge").With("pointer", "/contradictions")
	}
	for _, id := range ids {
		if err := strictjson.Text("contradiction", id, 64); err != nil {
			return err
		}
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	return store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) error {
		n, err := acknowledgeVerb.DoAt(ctx, tx, at, acknowledgeArgs{operation, by, ids})
		if err == nil && n < len(ids) {
			err = fault.New(fault.NotFound, "operation %q does not have all of these contradictions; none was acknowledged: check the ids", operation)
		}
		if err != nil {
			return err
		}
		return audit.Record(ctx, tx, audit.Action{Name: "operation.acknowledge", Subject: "operation/" + operation, Actor: by, After: map[string]any{"contradictions": ids}})
	})
}
