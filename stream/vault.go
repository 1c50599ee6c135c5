package stream

import (
	"context"
	"crypto/cipher"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/subjectkey"
)

// Vault appends and reads events whose data is about somebody, their Subject,
// and must one day be forgotten although events are never deleted. It is safe
// for concurrent use.
//
//	vault, err := stream.NewVault(master)
//	_, err = vault.Append(ctx, hf, "customer-7", stream.Any,
//		stream.Event{Name: "moved", Subject: "person-7", Data: []byte(`{"street": "…"}`)})
//	_, err = vault.Forget(ctx, hf, "person-7")
//
// What it guarantees:
//
//   - The data of an event that has a subject reaches the database encrypted,
//     under a key that only this subject has. The key is kept in the database
//     under the master key, which never goes there. The names of streams, events
//     and subjects are not encrypted: put nothing personal into them.
//   - When Forget has returned, no node reads data of the subject any more, nor
//     appends any: a key is asked for in each call, and kept no longer. An append
//     that was under way then may still be committed, and cannot be read either.
//   - Data that was changed in the database, or moved to another stream, name,
//     subject or workspace, is an error and is never shown. That whole events of
//     one subject and name were exchanged within a stream is not noticed.
//
// To forget is to overwrite a row. What the database keeps of old rows for a
// while, and what is in backups, still has the key under the master key; they
// have their own times to end.
//
// Without the master key everything that has a subject is lost: keep it as you
// keep the keys to your backups, and not with them.
type Vault struct {
	master cipher.AEAD
	id     [masterIDSize]byte
}

// NewVault returns a vault under a master key of 32 random bytes. Every node
// uses the same.
func NewVault(master []byte) (*Vault, error) {
	if len(master) != keySize {
		return nil, fault.New(fault.Validation, "a vault's master key has %d random bytes, and this one has %d", keySize, len(master)).
			With("field", "master")
	}
	if !slices.ContainsFunc(master, func(b byte) bool { return b != 0 }) {
		return nil, fault.New(fault.Validation, "a vault's master key has %d random bytes, and these are all zero", keySize).
			With("field", "master")
	}
	aead, err := newAEAD(master)
	if err != nil {
		return nil, err
	}
	return &Vault{master: aead, id: masterID(master)}, nil
}

// Format keeps the master key out of what is printed.
func (v *Vault) Format(f fmt.State, _ rune) { fmt.Fprint(f, "stream.Vault") }

// Append is [Append], and encrypts the data of events that have a Subject. A
// subject's key is made when it is first needed. An event for a subject that is
// forgotten is refused with [holdfast.ErrConflict], and nothing is written.
//
// Encrypted data is a third longer, and has the same limit as other data.
func (v *Vault) Append(ctx context.Context, d holdfast.Doer, stream string, want Version, all ...Event) (Version, error) {
	for i := range all {
		if err := checkPlain(&all[i]); err != nil {
			return 0, fmt.Errorf("event %d: %w", i, err)
		}
	}
	keys, err := v.sealing(ctx, d, subjectsOf(all))
	if err != nil {
		return 0, err
	}
	sealed := slices.Clone(all)
	for i := range sealed {
		if e := &sealed[i]; e.Subject != "" {
			e.Stream = stream
			e.Data = seal(keys[e.Subject], e)
		}
	}
	return Append(ctx, d, stream, want, sealed...)
}

// Read is [Read], and decrypts what it finds, as Open does.
func (v *Vault) Read(ctx context.Context, d holdfast.Doer, stream string, from Version, limit int) ([]Event, error) {
	return v.opened(ctx, d)(Read(ctx, d, stream, from, limit))
}

// ReadBackward is [ReadBackward], and decrypts what it finds, as Open does.
func (v *Vault) ReadBackward(ctx context.Context, d holdfast.Doer, stream string, from Version, limit int) ([]Event, error) {
	return v.opened(ctx, d)(ReadBackward(ctx, d, stream, from, limit))
}

func (v *Vault) opened(ctx context.Context, d holdfast.Doer) func([]Event, error) ([]Event, error) {
	return func(all []Event, err error) ([]Event, error) {
		if err == nil {
			err = v.Open(ctx, d, all)
		}
		if err != nil {
			return nil, err
		}
		return all, nil
	}
}

// Open decrypts events as they were read, in place and once. Events without a
// subject stay as they are; those of a subject that is forgotten have the data
// null and say that they are Forgotten.
//
// Data that cannot be decrypted is an error, and then none of the events is
// changed: [fault.Forbidden] where the vault has another master key than the one
// that the data was kept under, [fault.DatabaseDamaged] where the data or the key
// is not what was written.
func (v *Vault) Open(ctx context.Context, d holdfast.Doer, all []Event) error {
	keys, err := v.opening(ctx, d, subjectsOf(all))
	if err != nil {
		return err
	}
	opened := slices.Clone(all)
	for i := range opened {
		if err := unseal(&opened[i], keys); err != nil {
			return err
		}
	}
	copy(all, opened)
	return nil
}

// Forget drops a subject's key, for good and on all nodes, and says whether
// there was one to drop. The subject need not be known: from now on nothing is
// appended for it. Where an answer of the database is lost it asks again, and
// may then say false although it was this call that dropped the key.
func (v *Vault) Forget(ctx context.Context, d holdfast.Doer, subject string) (bool, error) {
	return subjectkey.Forget(ctx, store.DoerOf(d), subject)
}

// opening returns the keys of the subjects that are known: nil for those that
// are forgotten.
func (v *Vault) opening(ctx context.Context, d holdfast.Doer, names []string) (map[string]cipher.AEAD, error) {
	found, err := subjectkey.Find(ctx, store.DoerOf(d), names)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]cipher.AEAD, len(found))
	for name, wrapped := range found {
		if keys[name], err = v.unwrap(store.WorkspaceOf(ctx), name, wrapped); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// sealing returns the keys of all the subjects. Those that have none get one: of
// two who make it at once both use the one that was stored.
func (v *Vault) sealing(ctx context.Context, d holdfast.Doer, names []string) (map[string]cipher.AEAD, error) {
	keys, err := v.opening(ctx, d, names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, known := keys[name]; !known {
			if keys[name], err = v.first(ctx, d, name); err != nil {
				return nil, err
			}
		}
		if keys[name] == nil {
			return nil, fault.New(fault.Conflict,
				"the subject %q is forgotten, and nothing more is kept about it: append the event without personal data and without a subject, or under a subject of another name", name).
				With("subject", name)
		}
	}
	return keys, nil
}

// first makes a key for a subject, and returns the one that is stored then.
func (v *Vault) first(ctx context.Context, d holdfast.Doer, name string) (cipher.AEAD, error) {
	workspace := store.WorkspaceOf(ctx)
	stored, err := subjectkey.Make(ctx, store.DoerOf(d), name, v.wrap(workspace, name, newKey()))
	if err != nil {
		return nil, err
	}
	return v.unwrap(workspace, name, stored)
}

// subjectsOf returns each subject once, in order: keys are made in this order,
// so that two transactions do not wait for each other.
func subjectsOf(all []Event) []string {
	var names []string
	for i := range all {
		if all[i].Subject != "" {
			names = append(names, all[i].Subject)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
