// Package audit records administrative actions: who did what, with which request, and what it changed. An entry is
// written in the transaction of its action, so there is no action without its entry, and no entry without its action.
// Entries are never changed or deleted. They hold no secrets: callers pass values without them.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Action is an action to record.
type Action struct {
	Name    string // object and verb: "key.create"
	Subject string // kind and name of the object: "key/06gt…"
	Actor   string // "" is the caller of the context
	// Before and After are the object without its secrets, as JSON; nil is nothing.
	Before, After any
}

// Entry is a recorded action.
type Entry struct {
	ID, Action, Subject, Actor, Request string
	Before, After                       json.RawMessage // nil is nothing
	At                                  time.Time
}

// Filter selects entries. The zero value selects all.
type Filter struct {
	Actor, Action, Subject string
	Since, Until           time.Time // until is not included
}

type recordArgs struct {
	id      string `arg:"id"`
	action  string `arg:"action"`
	subject string `arg:"subject"`
	actor   string `arg:"actor"`
	request string `arg:"request"`
	before  string `arg:"before,null"`
	after   string `arg:"after,null"`
}

type listArgs struct {
	id      string `arg:"id"`
	actor   string `arg:"actor"`
	action  string `arg:"action"`
	subject string `arg:"subject"`
	since   int64  `arg:"since"`
	until   int64  `arg:"until"`
	limit   int    `arg:"limit"`
}

var (
	recordVerb = store.VerbOf[recordArgs](store.Decl{Name: "audit.record", Idempotent: true}, nil, store.ScanApplied)
	listVerb   = store.VerbOf[listArgs](store.Decl{Name: "audit.list", Lane: store.Read}, nil, scan)
)

func scan(all *[]Entry, r store.Row) error {
	var e Entry
	var before, after []byte
	err := r.Scan(&e.ID, &e.Action, &e.Subject, &e.Actor, &e.Request, &before, &after, &e.At)
	if len(before) > 0 {
		e.Before = before
	}
	if len(after) > 0 {
		e.After = after
	}
	*all = append(*all, e)
	return err
}

// Record records an action in its transaction.
func Record(ctx context.Context, tx *store.Tx, a Action) error {
	by := refusals.CallerOf(ctx)
	before, err := text(a.Before)
	if err != nil {
		return err
	}
	after, err := text(a.After)
	if err != nil {
		return err
	}
	_, err = recordVerb.Do(ctx, tx, recordArgs{store.NewID().String(), a.Name, a.Subject, cmp.Or(a.Actor, by.Actor), by.Request, before, after})
	return err
}

type requestedKey struct{}

// Requested returns a context in which [RecordRequested] records. It marks a change that a caller requests, unlike one
// that a program makes when it opens or first uses a workspace.
func Requested(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestedKey{}, true)
}

// RecordRequested records an action if the context is from [Requested].
func RecordRequested(ctx context.Context, tx *store.Tx, a Action) error {
	if ctx.Value(requestedKey{}) == nil {
		return nil
	}
	return Record(ctx, tx, a)
}

func text(v any) (string, error) {
	if v == nil {
		return "", nil
	}
	t, err := json.Marshal(v)
	return string(t), err
}

// lastID is after every id.
const lastID = "ffffffff-ffff-ffff-ffff-ffffffffffff"

// List returns entries of the context's workspace, the latest first, beginning before the one with the given id; "" is
// the latest.
func List(ctx context.Context, d store.Doer, f Filter, before string, limit int) ([]Entry, error) {
	return listVerb.Do(ctx, d, listArgs{cmp.Or(before, lastID), f.Actor, f.Action, f.Subject, ms(f.Since), ms(f.Until), limit})
}

func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
