package scopestore

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Entry is a scope in a list, without its state.
type Entry struct {
	ID                   string
	Version              int64
	Exists               bool // false for a tombstone and for a scope that has expired
	CreatedAt, UpdatedAt time.Time
	ExpiresAt            time.Time // 1970-01-01 if it does not expire
}

// ListArgs selects scopes of a kind.
type ListArgs struct {
	Kind   string
	Prefix string // of the ids
	After  string
	Limit  int
}

type listArgs struct {
	kind  string `arg:"kind"`
	after string `arg:"after"`
	from  string `arg:"from"`
	upto  string `arg:"upto"`
	limit int    `arg:"limit"`
}

type listKindsArgs struct {
	after string `arg:"after"`
	limit int    `arg:"limit"`
}

var (
	listVerb = store.VerbOf[listArgs](store.Decl{Name: "scopes.list", Lane: store.Read}, nil,
		store.Each(func(e *Entry) []any {
			return []any{&e.ID, &e.Version, &e.Exists, &e.CreatedAt, &e.UpdatedAt, &e.ExpiresAt}
		}))
	listKindsVerb = store.VerbOf[listKindsArgs](store.Decl{Name: "scopes.list_kinds", Lane: store.Read}, nil, store.ScanValues[string])
)

// List returns a page of the scopes of a kind in the order of their ids, including those that do not exist any more.
func List(ctx context.Context, d store.Doer, a ListArgs) ([]Entry, error) {
	if err := CheckNames(a.Kind, "-"); err != nil {
		return nil, err
	}
	if a.Prefix != "" {
		if err := strictjson.Text("prefix", a.Prefix, events.MaxName); err != nil {
			return nil, err
		}
	}
	return listVerb.Do(ctx, d, listArgs{a.Kind, a.After, max(a.After, a.Prefix), store.PrefixEnd(a.Prefix), a.Limit})
}

// ListKinds returns a page of the kinds of which there are scopes, or were until a day ago.
func ListKinds(ctx context.Context, d store.Doer, after string, limit int) ([]string, error) {
	return listKindsVerb.Do(ctx, d, listKindsArgs{after, limit})
}
