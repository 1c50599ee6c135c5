package main

import (
	"context"
	"encoding/json"

	"github.com/holdfast-go/holdfast/scope"
)

func startHotSwap(s system) unit {
	return func(ctx context.Context, _, _ int) error { return s.swap(ctx, "swapped") }
}

type swapped struct {
	Count int64 `json:"count"`
}

func (e holdfastSystem) swap(ctx context.Context, id string) error {
	_, err := scope.In[swapped](e.hf, kind, id).Atomic(ctx, func(_ context.Context, s swapped) (swapped, error) {
		s.Count++
		return s, nil
	})
	return err
}

func (h sqlSystem) swap(ctx context.Context, id string) error {
	return h.Swap(ctx, kind, id, func(state string) (string, error) {
		var s swapped
		if err := json.Unmarshal([]byte(state), &s); err != nil {
			return "", err
		}
		s.Count++
		doc, err := json.Marshal(s)
		return string(doc), err
	})
}
