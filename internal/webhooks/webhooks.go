// Package webhooks stores the webhooks of a workspace: URLs that events are sent to. Each
// webhook has its own reaction, [Reaction], which is created and removed with it in one
// transaction. The positions, failures and repairs of a webhook are those of its
// reaction. The HTTP API sends the messages; this package does not use [net/http].
//
// The secrets that sign messages are stored encrypted (sealed, by a [seal.Box]). Each change writes
// an event to the webhook's history stream, whose head is the version in the webhook's row.
package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/secretref"
	"github.com/holdfast-go/holdfast/internal/secrets"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Webhook is a webhook without its secrets.
type Webhook struct {
	ID, Name, URL string
	Events        []string // "*" selects every event
	Streams       string   // see [reactions.Definition]
	CreatedBy     string
	CreatedAt     time.Time
	RotatedAt     *time.Time        // nil before the first rotation
	Headers       map[string]string // sent with each message; values may contain references ${secret:NAME}
	SignedWith    string            // the reference to the secret that signs messages; "" for the webhook's own
	OverlapUntil  *time.Time        // end of the time in which messages carry both signatures; may be in the past

	version int64
}

// Reaction returns the name of a webhook's reaction.
func Reaction(id string) string { return reactions.HookPrefix + id }

// Stream returns the name of a webhook's history stream.
func Stream(id string) string { return "$webhook/" + id }

// Reported reports whether a stream is the history of a webhook's reaction. Such a
// history is sent to no webhook: reporting a failed report would loop forever.
func Reported(stream string) bool {
	return strings.HasPrefix(stream, strings.TrimSuffix(reactions.Stream(reactions.HookPrefix, ""), "/"))
}

// Topic is the topic that is woken when the webhooks change.
const Topic = "webhooks"

// Limits.
const (
	MaxEvents  = 100
	MaxOverlap = 30 * 24 * time.Hour
	maxListed  = 1000
)

// Retries of messages. Without jitter a stream is blocked after about half a day: the
// pauses are 5, 10, 20 … seconds, and then an hour.
const (
	retries = 20
	first   = 5 * time.Second
	last    = time.Hour
	lease   = 30 * time.Second
)

// Definition returns the definition of a webhook's reaction.
func Definition(id string, names []string, streams string) reactions.Definition {
	o := reactions.DefaultOptions()
	o.MaxRetries, o.Lease = retries, lease
	o.Backoff = reactions.Backoff{Kind: "exponential", Base: first, Max: last}
	return reactions.Definition{Name: Reaction(id), Events: names, Streams: streams, FromNow: true, Options: o}
}

// CreateArgs are the arguments of [Create].
type CreateArgs struct {
	Name    string   `arg:"name"` // "" for none
	URL     string   `arg:"url"`
	Events  []string `arg:"events"` // none selects every event
	Streams string   `arg:"streams"`
	Headers map[string]string
	Secret  string // or a reference secret:NAME
	By      string `arg:"actor"`
}

func (a *CreateArgs) check() error {
	if a.Name != "" {
		if err := strictjson.Text("name", a.Name, events.MaxName); err != nil {
			return err
		}
	}
	if len(a.Events) > MaxEvents {
		return fault.New(fault.Validation, "a webhook may have at most %[2]d event names, got %[1]d", len(a.Events), MaxEvents).With("field", "events")
	}
	d := Definition("new", a.Events, a.Streams)
	if err := d.Check(); err != nil {
		return err
	}
	return strictjson.Text("by", a.By, events.MaxName)
}

type createArgs struct {
	CreateArgs
	id      string `arg:"id"`
	sealed  string `arg:"secret"`
	headers string `arg:"headers"`
}

type rotateArgs struct {
	id      string        `arg:"id"`
	version int64         `arg:"version"`
	sealed  string        `arg:"secret"`
	overlap time.Duration `arg:"overlap"`
	by      string        `arg:"actor"`
}

type removeArgs struct {
	id string `arg:"id"`
	by string `arg:"actor"`
}

type result struct {
	applied bool
	hook    Webhook
}

type listArgs struct {
	after string `arg:"after"`
	limit int    `arg:"limit"`
}

var (
	createVerb = store.VerbOf[createArgs](store.Decl{Name: "webhooks.create", Events: store.HistoryEvents},
		func(a createArgs) []string { return []string{row(a.id)} }, scan).
		RecoverWith(func(a createArgs, m store.CommitProof) result {
			return result{true, Webhook{ID: a.id, Name: a.Name, URL: a.URL, Events: a.Events, Streams: a.Streams, Headers: a.Headers, SignedWith: signedWith(a.Secret), CreatedBy: a.By, CreatedAt: m.At}}
		}).
		Emits(func(a createArgs) store.Emission { return emission(a.id, "created") }).
		Wakes(func(createArgs) []string { return []string{Topic} })
	rotateVerb = store.VerbOf[rotateArgs](store.Decl{Name: "webhooks.rotate", Events: store.HistoryEvents},
		func(a rotateArgs) []string { return []string{row(a.id)} }, scan).
		RecoverWith(func(a rotateArgs, _ store.CommitProof) result {
			return result{true, Webhook{ID: a.id, version: a.version + 1}}
		}).
		Emits(func(a rotateArgs) store.Emission { return emission(a.id, "rotated") })
	removeVerb = store.VerbOf[removeArgs](store.Decl{Name: "webhooks.remove", Events: store.HistoryEvents},
		func(a removeArgs) []string { return []string{row(a.id)} },
		store.ScanApplied).
		RecoverWith(func(removeArgs, store.CommitProof) bool { return true }).
		Emits(func(a removeArgs) store.Emission { return emission(a.id, "removed") }).
		Wakes(func(removeArgs) []string { return []string{Topic} })
	getVerb  = store.NewVerb(store.Decl{Name: "webhooks.get", Lane: store.Read}, nil, store.TextArg("id"), scan)
	listVerb = store.VerbOf[listArgs](store.Decl{Name: "webhooks.list", Lane: store.Read}, nil,
		func(all *[]Webhook, r store.Row) error {
			var one result
			err := scan(&one, r)
			*all = append(*all, one.hook)
			return err
		})
)

// row returns the name of a webhook's row, for verbs that lock it.
func row(id string) string { return "webhook/" + id }

func emission(id, name string) store.Emission {
	return store.Emission{Stream: Stream(id), Names: []string{name}}
}

// every returns the stored form of event names: "*" for all, otherwise a sorted list.
func every(names []string) []string {
	if len(names) == 0 || slices.Contains(names, "*") {
		return []string{"*"}
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

func scan(r *result, from store.Row) error {
	w := &r.hook
	var names []byte
	var headers string
	var rotated, until time.Time
	if err := from.Scan(&w.ID, &w.Name, &w.URL, &names, &w.Streams, &w.version, &w.CreatedBy, &w.CreatedAt, &rotated, &until, &headers, &w.SignedWith); err != nil {
		return err
	}
	r.applied = from.Applied()
	w.RotatedAt, w.OverlapUntil = store.Moment(rotated), store.Moment(until)
	if err := json.Unmarshal(names, &w.Events); err != nil {
		return fmt.Errorf("cannot decode the events of webhook %s: %w", w.ID, err)
	}
	if err := json.Unmarshal([]byte(headers), &w.Headers); err != nil {
		return fmt.Errorf("cannot decode the headers of webhook %s: %w", w.ID, err)
	}
	return nil
}

// Create creates a webhook and its reaction in the context's workspace. Events appended
// after that are sent.
func Create(ctx context.Context, d store.Doer, box *seal.Box, a CreateArgs) (Webhook, error) {
	if err := a.check(); err != nil {
		return Webhook{}, err
	}
	a.Events = every(a.Events)
	id := newID()
	made := createArgs{CreateArgs: a, id: id, sealed: stored(ctx, box, id, a.Secret)}
	var err error
	if made.headers, err = secretref.Encode(a.Headers); err != nil {
		return Webhook{}, err
	}
	var w Webhook
	err = store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) error {
		r, err := createVerb.Do(ctx, tx, made)
		if err == nil && !r.applied { // practically impossible, because ids are random
			err = fault.New(fault.Conflict, "webhook id %q already exists: try again", id).AsRetryable()
		}
		if err != nil {
			return err
		}
		w = r.hook
		if err := reactions.Enlist(ctx, tx, Definition(id, w.Events, w.Streams)); err != nil {
			return err
		}
		if err := secrets.Check(ctx, tx, secretref.NamesIn(a.Headers, a.Secret)); err != nil { // Enlist has raised the registry's revision
			return err
		}
		return record(ctx, tx, "webhook.create", a.By, nil, &w)
	})
	return w, err
}

// stored returns the stored form of a secret: encrypted, unless it is a reference.
func stored(ctx context.Context, box *seal.Box, id, secret string) string {
	if secretref.IsWhole(secret) {
		return secret
	}
	return box.Seal(secret, sealContext(store.WorkspaceOf(ctx), id)...)
}

func signedWith(secret string) string {
	if secretref.IsWhole(secret) {
		return secret
	}
	return ""
}

// sealContext returns the context that a webhook's encrypted secret is bound to: in another one, it cannot be decrypted.
func sealContext(workspace, id string) []string { return []string{"webhook", workspace, id} }

// Rotate gives a webhook of the context's workspace a new secret. During the overlap
// messages are signed with the previous secret too. Of several concurrent rotations one
// succeeds; the others return [fault.Conflict].
func Rotate(ctx context.Context, d store.Doer, box *seal.Box, id, secret string, overlap time.Duration, by string) (Webhook, error) {
	if overlap < 0 || overlap > MaxOverlap {
		return Webhook{}, fault.New(fault.Validation, "overlap must be between 0 and 30 days, got %s", overlap).With("field", "overlap")
	}
	if err := strictjson.Text("by", by, events.MaxName); err != nil {
		return Webhook{}, err
	}
	var w Webhook
	err := store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) error {
		if secretref.IsWhole(secret) {
			if _, err := store.Raise(ctx, tx); err != nil { // the secret remains until the transaction ends
				return err
			}
		}
		was, err := Get(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := secrets.Check(ctx, tx, secretref.NamesIn(nil, secret)); err != nil {
			return err
		}
		r, err := rotateVerb.Do(ctx, tx, rotateArgs{id, was.version, stored(ctx, box, id, secret), overlap, by})
		switch {
		case err != nil:
			return err
		case r.hook.ID == "":
			return missing(id)
		case !r.applied:
			return fault.New(fault.Conflict, "webhook %q was changed concurrently: read it again and retry", id)
		}
		w = r.hook
		return record(ctx, tx, "webhook.rotate", by, &was, &w)
	})
	return w, err
}

// record records an action on a webhook in the audit, without its secrets.
func record(ctx context.Context, tx *store.Tx, action, by string, was, now *Webhook) error {
	a := audit.Action{Name: action, Actor: by}
	shown := func(w *Webhook) any {
		if w == nil {
			return nil
		}
		a.Subject = "webhook/" + w.ID
		out := map[string]any{"name": w.Name, "url": w.URL, "events": w.Events, "streams": w.Streams, "rotatedAt": w.RotatedAt}
		if len(w.Headers) > 0 {
			out["headers"] = w.Headers
		}
		if w.SignedWith != "" {
			out["signedWith"] = w.SignedWith
		}
		return out
	}
	a.Before, a.After = shown(was), shown(now)
	return audit.Record(ctx, tx, a)
}

// Remove removes a webhook of the context's workspace and its reaction. Events that it
// has not sent yet are never sent.
func Remove(ctx context.Context, d store.Doer, id, by string) error {
	if err := strictjson.Text("by", by, events.MaxName); err != nil {
		return err
	}
	if !isID(id) {
		return missing(id)
	}
	return store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) error {
		was, err := Get(ctx, tx, id)
		if err != nil {
			return err
		}
		applied, err := removeVerb.Do(ctx, tx, removeArgs{id, by})
		if err == nil && !applied {
			err = missing(id)
		}
		if err != nil {
			return err
		}
		if _, err = reactions.Dismiss(ctx, tx, Reaction(id)); err != nil {
			return err
		}
		return record(ctx, tx, "webhook.delete", by, &was, nil)
	})
}

// Get returns a webhook of the context's workspace, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, id string) (Webhook, error) {
	if !isID(id) {
		return Webhook{}, missing(id)
	}
	r, err := getVerb.Do(ctx, d, id)
	if err == nil && r.hook.ID == "" {
		err = missing(id)
	}
	return r.hook, err
}

// List returns webhooks of the context's workspace ordered by id, after
// the given id.
func List(ctx context.Context, d store.Doer, after string, limit int) ([]Webhook, error) {
	return listVerb.Do(ctx, d, listArgs{after, min(max(limit, 1), maxListed)})
}

func missing(id string) *fault.Error {
	return fault.New(fault.NotFound, "webhook %q does not exist", id)
}
