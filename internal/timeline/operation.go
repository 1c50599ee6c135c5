package timeline

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Operation is what the history of an entity says of an operation.
type Operation struct {
	Stream    string
	First     events.Event // claimed or, without a claim, settled
	Last      events.Event // so far
	Step      string
	Requester string
	Status    string // of the entity after the first event
	Epoch     int64  // after the last event
}

type operationArgs struct {
	Operation string `arg:"operation"`
	Upto      string `arg:"upto"`
}

// begun is where the history of an operation begins.
type begun struct {
	stream  string
	version int64
}

var findOperationVerb = store.VerbOf[operationArgs](store.Decl{Name: "history.find_operation", Lane: store.Read}, nil,
	func(b *begun, row store.Row) error { return row.Scan(&b.stream, &b.version) })

// soon is the time in which the first event of an operation is looked for. The ids of operations and of events grow with the
// time of the node that makes them, and a node makes both for the same call: the event's usually a few microseconds later.
const soon = 10 * time.Second

// FindOperation returns an operation of an entity by its history, also one that has ended. The error is
// [fault.NotFound] if the history is no longer retained, or if the first event was written more than ten seconds after the
// operation began: a step without a claim writes its only event at its end.
func FindOperation(ctx context.Context, d store.Doer, id string) (o Operation, err error) {
	at, err := uuid.Parse(id)
	if err != nil || at.Version() != 7 || at.String() != id {
		return o, fault.New(fault.NotFound, "operation %q does not exist", id)
	}
	upto := at
	var ms [8]byte
	copy(ms[2:], at[:6])
	binary.BigEndian.PutUint64(ms[:], binary.BigEndian.Uint64(ms[:])+uint64(soon.Milliseconds()))
	copy(upto[:6], ms[2:])
	b, err := findOperationVerb.Do(ctx, d, operationArgs{id, upto.String()})
	if err != nil {
		return o, err
	}
	if b.stream == "" {
		return o, fault.New(fault.NotFound, "operation %q does not exist, or its history is no longer retained", id)
	}
	o.Stream = b.stream
	const some = 100
	for from := b.version; ; from += some {
		page, err := events.Read(ctx, d, events.ReadArgs{Stream: o.Stream, From: from, Limit: some})
		if err != nil {
			return o, err
		}
		for _, e := range page {
			var a attempt
			if json.Unmarshal(e.Data, &a) != nil || cmp.Or(a.Operation, a.Note.Operation) != id {
				return o, nil
			}
			if e.Version == b.version {
				o.First, o.Step, o.Requester, o.Status = e, cmp.Or(a.Step, a.Note.Step), cmp.Or(a.Requester, a.Note.Requester), a.To
			}
			o.Last, o.Epoch = e, a.Epoch
		}
		if len(page) < some || store.Cut(ctx) {
			return o, nil
		}
	}
}

// Subject returns the lifecycle, and the entity: "invoice", "17".
func (o *Operation) Subject() (lifecycle, entity string) {
	lifecycle, entity, _ = strings.Cut(strings.TrimPrefix(o.Stream, "$entity/"), "/")
	return lifecycle, entity
}
