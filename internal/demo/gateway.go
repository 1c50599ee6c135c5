package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/stream"
)

// gateway simulates the external service that charges cards. Its book is a stream that it
// writes in separate transactions, so that a rollback of an invoice does not undo a charge.
type gateway struct {
	engine *holdfast.Engine
	book   string
	// correlation and causation are those of the entries that it writes.
	correlation, causation string
}

// slip is the data of an entry in the book.
type slip struct {
	Key     string `json:"key"`
	Cents   int64  `json:"cents"`
	Receipt string `json:"receipt"`
}

// Event names of the book.
const (
	slipCharged  = "charged"
	slipRepeated = "repeated" // recognized by its key, and not charged again
)

func gatewayOf(e *holdfast.Engine, id string) gateway {
	return gateway{engine: e, book: "gateway-" + runOf(id)}
}

// charge charges a card. Unless the invoice is keyless, the gateway charges once for each key.
func (g gateway) charge(ctx context.Context, key string, i invoice) (receipt string, err error) {
	for {
		book, err := g.entries(ctx)
		if err != nil {
			return "", err
		}
		last := book.last()
		s, name := slip{key, i.Cents, fmt.Sprintf("R%d", last+2)}, slipCharged
		if known := book.under(key, slipCharged); len(known) > 0 && !i.Keyless {
			s.Receipt, name = known[0].Receipt, slipRepeated
		}
		data, err := json.Marshal(s)
		if err != nil {
			return "", err
		}
		_, err = stream.Append(ctx, g.engine, g.book, last, stream.Event{Name: name, Data: data, Correlation: g.correlation, Causation: g.causation})
		if !errors.Is(err, holdfast.ErrConcurrency) { // else another charge was recorded concurrently
			return s.Receipt, err
		}
	}
}

type entry struct {
	name    string
	version stream.Version
	slip
}

type book []entry

// last returns the version of the last entry. Old entries may have been removed.
func (b book) last() stream.Version {
	if len(b) == 0 {
		return stream.None
	}
	return b[len(b)-1].version
}

func (g gateway) entries(ctx context.Context) (book, error) {
	all, err := holdfast.Collect(stream.Read(ctx, g.engine, g.book, 0))
	if err != nil {
		return nil, err
	}
	b := make(book, len(all))
	for i, e := range all {
		b[i].name, b[i].version = e.Name, e.Version
		if err := json.Unmarshal(e.Data, &b[i].slip); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// under returns the entries with a key and an event name.
func (b book) under(key, name string) (all []slip) {
	for _, e := range b {
		if e.Key == key && e.name == name {
			all = append(all, e.slip)
		}
	}
	return all
}
