// Package keys stores the API keys of the HTTP API, and the sessions of browsers. A key belongs to one workspace, and has a role
// and the requesters that it may act for. Its text is returned once, when it is created; only the
// SHA-256 of its secret is stored. A [Session] stands for a key in a browser, and ends with it. A [Ring]
// verifies what a caller presents.
//
//	key, text, err := keys.Create(ctx, engine, keys.CreateArgs{Name: "ci", Role: keys.Operate, By: "ann"})
//
// Each change writes an event to the key's history, whose head is the version in the key's row.
package keys

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Role determines which requests a key may make.
type Role string

// The roles.
const (
	Read    Role = "read"
	Operate Role = "operate"
	Worker  Role = "worker"
	Admin   Role = "admin"
)

// Valid reports whether the role exists.
func (r Role) Valid() bool { return slices.Contains([]Role{Read, Operate, Worker, Admin}, r) }

// Key is an API key without its secret.
type Key struct {
	ID, Workspace string
	Name          string
	Role          Role
	Requesters    []string // requesters that it may act for; [Everyone] includes all
	Handlers      []string // handlers whose tasks it may claim; empty means all
	Restrictions  Restrictions
	Rate          int // requests per second; 0 means the server's default
	CreatedBy     string
	CreatedAt     time.Time
	ExpiresAt     *time.Time // nil if it does not expire
	RevokedAt     *time.Time
	LastUsedAt    *time.Time // about a minute behind; nil if it was never used
	origin        string     // the first key of its rotation chain, set by a [Ring]; "" if it replaced no key
}

// Origin returns the id of the first key in the rotation chain of a key that a [Ring] has read: the
// key's own id, if it replaced no other key.
func (k Key) Origin() string { return cmp.Or(k.origin, k.ID) }

// Everyone, in a key's requesters, stands for all of them.
const Everyone = "*"

// Speaks reports whether the key may act for a requester.
func (k Key) Speaks(requester string) bool {
	return slices.Contains(k.Requesters, requester) || slices.Contains(k.Requesters, Everyone)
}

// Serves reports whether the key may claim the tasks of a handler.
func (k Key) Serves(handler string) bool {
	return len(k.Handlers) == 0 || slices.Contains(k.Handlers, handler)
}

// clone returns a deep copy of the key.
func (k Key) clone() Key {
	k.Requesters, k.Handlers, k.Restrictions = slices.Clone(k.Requesters), slices.Clone(k.Handlers), k.Restrictions.clone()
	if k.ExpiresAt != nil {
		k.ExpiresAt = new(*k.ExpiresAt)
	}
	if k.RevokedAt != nil {
		k.RevokedAt = new(*k.RevokedAt)
	}
	if k.LastUsedAt != nil {
		k.LastUsedAt = new(*k.LastUsedAt)
	}
	return k
}

// Stream returns the name of the stream of a key's history.
func Stream(id string) string { return "$key/" + id }

// CreateArgs describes a new key. A key without requesters cannot fire steps; a key without
// handlers may claim the tasks of all; a key without a lifetime does not expire.
type CreateArgs struct {
	Name       string   `arg:"name"`
	Role       Role     `arg:"role"`
	Requesters []string `arg:"requesters"`
	Handlers   []string `arg:"handlers"`
	Rate       int      `arg:"rate"`
	Lifetime   time.Duration
	// Restrictions are what the key may do less than its role.
	Restrictions Restrictions
	By           string `arg:"actor"` // the actor that creates it
}

// result is a key after the command or, if that was refused, as it was found. It has no id if there
// is no such key.
type result struct {
	applied   bool
	key       Key
	successor string
}

type makeArgs struct {
	CreateArgs
	id          string `arg:"id"`
	hash        string `arg:"hash"`
	predecessor string `arg:"predecessor,null"`
	lifetime    *int64 `arg:"lifetime"`
	restricted  string `arg:"restrictions"`
}

type listArgs struct {
	after string `arg:"after"`
	limit int    `arg:"limit"`
}

var (
	createVerb = store.VerbOf[makeArgs](store.Decl{Name: "keys.create", Events: store.HistoryEvents},
		func(a makeArgs) []string { return []string{row(a.id)} }, scan).RecoverWith(recoveredMake).
		Emits(func(a makeArgs) store.Emission {
			return store.Emission{Stream: Stream(a.id), Names: []string{"created"}}
		})
	getVerb  = store.NewVerb(store.Decl{Name: "keys.get", Lane: store.Read}, nil, store.TextArg("id"), scan)
	listVerb = store.VerbOf[listArgs](store.Decl{Name: "keys.list", Lane: store.Read}, nil,
		func(all *[]Key, r store.Row) error {
			var one result
			err := scan(&one, r)
			*all = append(*all, one.key)
			return err
		})
)

// row returns the name of a key's row, for verbs that lock it.
func row(id string) string { return "key/" + id }

// lifetime converts to milliseconds, rounded up, so that no key expires early. It returns nil, no expiry, if d is 0.
func lifetime(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return new(millis(d))
}

func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func scan(r *result, from store.Row) error { return scanWith(r, from) }

// scanWith reads a key and additional columns of a statement.
func scanWith(r *result, from store.Row, more ...any) error {
	k := &r.key
	var requesters, handlers, restrictions []byte
	var expires, revoked, used time.Time
	err := from.Scan(append([]any{&k.ID, &k.Name, &k.Role, &requesters, &handlers, &restrictions, &k.Rate, &r.successor, &k.CreatedBy, &k.CreatedAt, &expires, &revoked, &used}, more...)...)
	if err != nil {
		return err
	}
	r.applied = from.Applied()
	k.ExpiresAt, k.RevokedAt, k.LastUsedAt = store.Moment(expires), store.Moment(revoked), store.Moment(used)
	if err := json.Unmarshal(requesters, &k.Requesters); err != nil {
		return fmt.Errorf("cannot decode the requesters of API key %s: %w", k.ID, err)
	}
	if err := json.Unmarshal(handlers, &k.Handlers); err != nil {
		return fmt.Errorf("cannot decode the handlers of API key %s: %w", k.ID, err)
	}
	if k.Restrictions, err = parseRestrictions(restrictions); err != nil {
		return fmt.Errorf("cannot decode the restrictions of API key %s: %w", k.ID, err)
	}
	return nil
}

func recoveredMake(a makeArgs, m store.CommitProof) result {
	k := Key{ID: a.id, Name: a.Name, Role: a.Role, Requesters: append([]string{}, a.Requesters...), Handlers: append([]string{}, a.Handlers...), Restrictions: a.Restrictions, Rate: a.Rate,
		CreatedBy: a.By, CreatedAt: m.At}
	if a.lifetime != nil {
		k.ExpiresAt = new(k.CreatedAt.Add(time.Duration(*a.lifetime) * time.Millisecond))
	}
	return result{applied: true, key: k}
}

// Create creates a key in the workspace of the context and returns it with its text, which cannot
// be read again.
func Create(ctx context.Context, d store.Doer, a CreateArgs) (Key, string, error) {
	if err := a.check(); err != nil {
		return Key{}, "", err
	}
	id, secret := newID(), newSecret()
	var k Key
	err := store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) (err error) {
		if k, err = create(ctx, tx, makeArgs{CreateArgs: a, id: id, hash: hash(secret, a.Restrictions)}); err != nil {
			return err
		}
		return audit.Record(ctx, tx, audit.Action{Name: "key.create", Subject: "key/" + id, Actor: a.By, After: audited(k)})
	})
	if err != nil {
		return Key{}, "", err
	}
	return k, join(id, secret), nil
}

// auditedKey is a key in the audit.
type auditedKey struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Role       Role     `json:"role"`
	Requesters []string `json:"requesters,omitempty"`
	Handlers   []string `json:"handlers,omitempty"`
	Restrictions
	Rate      int        `json:"rate,omitempty"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
}

func audited(k Key) auditedKey {
	return auditedKey{k.ID, k.Name, k.Role, k.Requesters, k.Handlers, k.Restrictions, k.Rate, k.ExpiresAt, k.RevokedAt}
}

func create(ctx context.Context, d store.Doer, a makeArgs) (Key, error) {
	a.lifetime, a.restricted = lifetime(a.Lifetime), a.Restrictions.text()
	r, err := createVerb.Do(ctx, d, a)
	if err == nil && !r.applied { // unlikely, because ids are random
		err = fault.New(fault.Conflict, "API key id %q already exists: try again", a.id).AsRetryable()
	}
	return in(ctx, r.key), err
}

// Get returns a key of the context's workspace, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, id string) (Key, error) {
	if !isID(id) {
		return Key{}, missing(id)
	}
	r, err := getVerb.Do(ctx, d, id)
	if err == nil && r.key.ID == "" {
		err = missing(id)
	}
	return in(ctx, r.key), err
}

// maxListed is the maximum length of a list.
const maxListed = 1000

// List returns keys of the context's workspace in the order of their ids, after the given id,
// including revoked and expired ones. A limit below 1 means 100.
func List(ctx context.Context, d store.Doer, after string, limit int) ([]Key, error) {
	if after != "" && !isID(after) {
		return nil, fault.New(fault.Validation, "after must be an API key id: use the last id of the previous page").With("field", "after")
	}
	if limit < 1 {
		limit = 100
	}
	all, err := listVerb.Do(ctx, d, listArgs{after, min(limit, maxListed)})
	for i := range all {
		all[i] = in(ctx, all[i])
	}
	return all, err
}

// in sets the workspace of a key that a verb has found.
func in(ctx context.Context, k Key) Key {
	if k.ID != "" {
		k.Workspace = store.WorkspaceOf(ctx)
	}
	return k
}

func missing(id string) *fault.Error {
	if !isID(id) { // do not repeat it: it may be a complete key
		return fault.New(fault.NotFound, "this is not an API key id: use the part of the key between hf_ and the next _")
	}
	return fault.New(fault.NotFound, "API key %q does not exist", id)
}
