package storetest

import (
	"context"
	"encoding/json"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
)

// IncArgs are the arguments of [Inc].
type IncArgs struct {
	Kind, ID, Field string
	By              int64
	Meta            events.Meta
}

// Sum is a scope and the number in it that was added to.
type Sum struct {
	scopestore.Scope
	Value int64
}

// Inc adds to an integer in a scope's state, and returns the sum. If the result was recovered from
// the event of the edit, the state is read separately, and may be newer.
func Inc(ctx context.Context, d holdfast.Doer, a IncArgs) (Sum, error) {
	op, err := scopestore.Inc(a.Field, a.By)
	if err != nil {
		return Sum{}, err
	}
	e, err := scopestore.Edit(ctx, store.DoerOf(d), scopestore.EditArgs{Kind: a.Kind, ID: a.ID, Op: op, Meta: a.Meta})
	s := Sum{e.Scope, e.Sum}
	if err != nil {
		return s, err
	}
	if s.State == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.Completing)
		defer cancel()
		now, _ := scopestore.Get(ctx, store.DoerOf(d), a.Kind, a.ID) // the sum is valid all the same
		s.State = now.State
		return s, nil
	}
	var fields map[string]json.RawMessage
	if err = json.Unmarshal(s.State, &fields); err == nil {
		err = json.Unmarshal(fields[a.Field], &s.Value)
	}
	return s, err
}
