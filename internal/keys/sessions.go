package keys

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	// SessionLifetime is how long a session is valid, unless its key ends earlier.
	SessionLifetime = 12 * time.Hour
	// MaxSessions is how many sessions a key has. One more ends the oldest.
	MaxSessions = 100
)

// Session stands for a key in a browser, which has a secret of its own.
type Session struct {
	ID, Key              string
	CreatedAt, ExpiresAt time.Time
}

// sessionArgs name a session.
type sessionArgs struct {
	key string `arg:"key"`
	id  string `arg:"id"`
}

type createSessionArgs struct {
	sessionArgs
	hash     string        `arg:"hash"`
	lifetime time.Duration `arg:"lifetime"`
}

type deleteOldestArgs struct {
	sessionArgs
	others int `arg:"others"`
}

type createdSession struct {
	applied bool
	Session
}

var (
	createSessionVerb = store.VerbOf[createSessionArgs](store.Decl{Name: "sessions.create", Idempotent: true},
		func(a createSessionArgs) []string { return []string{row(a.key)} },
		func(s *createdSession, r store.Row) error {
			s.applied = r.Applied()
			return r.Scan(&s.CreatedAt, &s.ExpiresAt)
		})
	deleteOldestVerb  = store.VerbOf[deleteOldestArgs](store.Decl{Name: "sessions.delete_oldest", Lane: store.Work}, nil, store.CountRows)
	deleteSessionVerb = store.VerbOf[sessionArgs](store.Decl{Name: "sessions.delete", Idempotent: true},
		func(a sessionArgs) []string { return []string{"session/" + a.key + "/" + a.id} }, store.ScanApplied)
	findSessionVerb = store.VerbOf[sessionArgs](store.Decl{Name: "sessions.find", Lane: store.Read}, nil,
		func(f *found, r store.Row) error {
			f.known = true
			return r.Scan(&f.session.CreatedAt, &f.session.ExpiresAt, &f.hash, &f.good, &f.left)
		})
	pruneSessionsVerb = store.NewVerb(store.Decl{Name: "sessions.prune", Lane: store.Work}, nil, store.IntArg("limit"), store.CountRows)
)

// CreateSession creates a session of a key of the context's workspace, and returns it with its text, which cannot be
// read again. If the key is no longer valid, the error is [fault.Auth].
func CreateSession(ctx context.Context, d store.Doer, key Key, by string) (Session, string, error) {
	a, secret := sessionArgs{key.ID, newID()}, newSecret()
	var s createdSession
	err := store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) (err error) {
		if s, err = createSessionVerb.Do(ctx, tx, createSessionArgs{a, hash(secret, key.Restrictions), SessionLifetime}); err != nil {
			return err
		}
		if !s.applied {
			return refused
		}
		s.ID, s.Key = a.id, key.ID
		if _, err = deleteOldestVerb.Do(ctx, tx, deleteOldestArgs{a, MaxSessions - 1}); err != nil {
			return err
		}
		return audit.Record(ctx, tx, audit.Action{Name: "session.create", Subject: "session/" + a.id, Actor: by, After: auditedSession{key.ID, s.ExpiresAt}})
	})
	if err != nil {
		return Session{}, "", err
	}
	return s.Session, joinSession(key.ID, a.id, secret), nil
}

// DeleteSession ends a session of the context's workspace. One that has ended already is left as it is.
func DeleteSession(ctx context.Context, d store.Doer, s Session, by string) error {
	return store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) error {
		applied, err := deleteSessionVerb.Do(ctx, tx, sessionArgs{s.Key, s.ID})
		if err != nil || !applied {
			return err
		}
		return audit.Record(ctx, tx, audit.Action{Name: "session.delete", Subject: "session/" + s.ID, Actor: by, Before: auditedSession{s.Key, s.ExpiresAt}})
	})
}

// auditedSession is a session in the audit.
type auditedSession struct {
	Key       string    `json:"key"`
	ExpiresAt time.Time `json:"expiresAt"`
}

const pruneLimit = 1000

// PruneSessions deletes expired sessions.
func PruneSessions(ctx context.Context, d store.Doer) (int, error) {
	return store.Sweep(ctx, d, func(at store.Partition) (int, error) { return pruneSessionsVerb.DoAt(ctx, d, at, pruneLimit) })
}
