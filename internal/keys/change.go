package keys

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/store"
)

type revokeArgs struct {
	id string `arg:"id"`
	by string `arg:"actor"`
}

type replaceArgs struct {
	id        string `arg:"id"`
	successor string `arg:"successor"`
	overlap   int64  `arg:"overlap"` // in ms
	by        string `arg:"actor"`
}

var (
	revokeVerb = store.VerbOf[revokeArgs](store.Decl{Name: "keys.revoke", Events: store.HistoryEvents},
		func(a revokeArgs) []string { return []string{row(a.id)} }, scan).
		RecoverWith(func(a revokeArgs, m store.CommitProof) result {
			return result{applied: true, key: Key{ID: a.id, RevokedAt: new(m.At.UTC())}}
		}).
		Emits(func(a revokeArgs) store.Emission {
			return store.Emission{Stream: Stream(a.id), Names: []string{"revoked"}}
		})
	replaceVerb = store.VerbOf[replaceArgs](store.Decl{Name: "keys.replace", Events: store.HistoryEvents},
		func(a replaceArgs) []string { return []string{row(a.id)} }, scan).
		RecoverWith(func(a replaceArgs, _ store.CommitProof) result {
			return result{applied: true, key: Key{ID: a.id}, successor: a.successor}
		}).
		Emits(func(a replaceArgs) store.Emission {
			return store.Emission{Stream: Stream(a.id), Names: []string{"rotated"}}
		})
)

// Revoke revokes a key of the context's workspace permanently, and returns it. Revoking it again
// changes nothing and returns the same.
func Revoke(ctx context.Context, d store.Doer, id, by string) (Key, error) {
	if !isID(id) {
		return Key{}, missing(id)
	}
	if err := checkActor(by); err != nil {
		return Key{}, err
	}
	var r result
	err := store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) (err error) {
		if r, err = revokeVerb.Do(ctx, tx, revokeArgs{id, by}); err == nil && r.key.ID == "" {
			err = missing(id)
		}
		if err != nil || !r.applied {
			return err
		}
		now := audited(r.key)
		was := now
		was.RevokedAt = nil
		return audit.Record(ctx, tx, audit.Action{Name: "key.revoke", Subject: "key/" + id, Actor: by, Before: was, After: now})
	})
	if err == nil && r.key.CreatedAt.IsZero() {
		return completed(ctx, d, in(ctx, r.key)), nil
	}
	return in(ctx, r.key), err
}

// completed adds fields that the event does not contain. If they cannot be read, the key is revoked
// nevertheless.
func completed(ctx context.Context, d store.Doer, k Key) Key {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.Completing)
	defer cancel()
	if now, err := Get(ctx, d, k.ID); err == nil {
		return now
	}
	return k
}

// Rotate replaces a key with a new one that has the same rights and the same lifetime, starting
// now, and returns it with its text, which cannot be read again. The old key expires after the
// overlap, or at its own expiry if that is earlier. A key that is revoked, expired or already
// rotated is a [fault.Conflict]: of several concurrent rotations one wins.
func Rotate(ctx context.Context, d store.Doer, id string, overlap time.Duration, by string) (Key, string, error) {
	if !isID(id) {
		return Key{}, "", missing(id)
	}
	if err := cmp.Or(checkTime("overlap", overlap), checkActor(by)); err != nil {
		return Key{}, "", err
	}
	next, secret := newID(), newSecret()
	var k Key
	err := store.Within(ctx, d, func(ctx context.Context, tx *store.Tx) (err error) {
		if k, err = rotate(ctx, tx, replaceArgs{id, next, millis(overlap), by}, secret); err != nil {
			return err
		}
		return audit.Record(ctx, tx, audit.Action{Name: "key.rotate", Subject: "key/" + id, Actor: by, After: audited(k)})
	})
	if err != nil {
		return Key{}, "", err
	}
	return k, join(next, secret), nil
}

// rotate reads the fields of the new key before it locks the old one. Only a rotation changes them,
// and the lock detects that.
func rotate(ctx context.Context, d store.Doer, a replaceArgs, secret string) (Key, error) {
	old, err := Get(ctx, d, a.id)
	if err != nil {
		return Key{}, err
	}
	r, err := replaceVerb.Do(ctx, d, a)
	if err != nil {
		return Key{}, err
	}
	if !r.applied {
		return Key{}, unrotatable(a.id, r)
	}
	again := CreateArgs{Name: old.Name, Role: old.Role, Requesters: old.Requesters, Handlers: old.Handlers, Restrictions: old.Restrictions, Rate: old.Rate, By: a.by}
	if old.ExpiresAt != nil {
		again.Lifetime = old.ExpiresAt.Sub(old.CreatedAt)
	}
	return create(ctx, d, makeArgs{CreateArgs: again, id: a.successor, hash: hash(secret, old.Restrictions), predecessor: a.id})
}

func unrotatable(id string, r result) error {
	switch {
	case r.key.ID == "":
		return missing(id)
	case r.key.RevokedAt != nil:
		return fault.New(fault.Conflict, "API key %q is revoked: create a new key", id)
	case r.successor != "":
		return fault.New(fault.Conflict, "API key %q was already rotated: use its successor %q", id, r.successor).With("successor", r.successor)
	}
	return fault.New(fault.Conflict, "API key %q has expired: create a new key", id)
}
