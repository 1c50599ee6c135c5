package stream

import (
	"context"
	"crypto/cipher"
	"fmt"
	"iter"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/subjectkey"
)

// Vault appends and reads events whose data is about a person (the Subject of the event). Although events never
// change, the vault can make a subject's data unreadable. It is safe for concurrent use.
//
//	vault, err := stream.NewVault(master)
//	_, err = vault.Append(ctx, hf, "customer-7", stream.Any,
//		stream.Event{Name: "moved", Subject: "person-7", Data: []byte(`{"street": "…"}`)})
//	_, err = vault.Forget(ctx, hf, "person-7")
//
// Guarantees:
//
//   - The data of an event that has a subject reaches the database encrypted, under a key that
//     belongs to this subject only. The key is stored in the database, encrypted under the master
//     key, which is never stored there. The names of streams, events and subjects are not
//     encrypted: do not put personal data into them.
//   - After Forget has returned, no node can read or append data of the subject, because each call fetches the key and does not cache it. An append that is in flight when Forget returns may still be committed, but its data cannot be read either.
//   - Data that was changed in the database, or moved to another stream, name, subject or
//     workspace, is reported as an error and never returned. The vault does not detect whole events of
//     the same subject and name that were swapped within a stream.
//
// Forget overwrites a row. Old row versions that the database retains for a while, and backups,
// still contain the key, encrypted under the master key, until they expire.
//
// If you lose the master key, all data that has a subject is lost. Store the key as carefully as the keys to your
// backups, and not together with the backups.
type Vault struct {
	master cipher.AEAD
	id     [masterIDSize]byte
}

// NewVault returns a vault with a master key of 32 random bytes. All nodes must use the same key.
// If the key has another length, or only zeros, NewVault returns [holdfast.ErrValidation].
func NewVault(masterKey []byte) (*Vault, error) {
	if len(masterKey) != keySize {
		return nil, fault.New(fault.Validation, "a vault's master key must have %d random bytes, got %d", keySize, len(masterKey)).
			With("field", "master")
	}
	if !slices.ContainsFunc(masterKey, func(b byte) bool { return b != 0 }) {
		return nil, fault.New(fault.Validation, "a vault's master key must have %d random bytes, but all are zero", keySize).
			With("field", "master")
	}
	aead, err := newAEAD(masterKey)
	if err != nil {
		return nil, err
	}
	return &Vault{master: aead, id: masterID(masterKey)}, nil
}

// Format prints the vault without its master key.
func (v *Vault) Format(f fmt.State, _ rune) { fmt.Fprint(f, "stream.Vault") }

// Append is like the function [Append], and encrypts the data of events that have a Subject. The key of a subject is
// created when it is first needed. If the subject of an event was forgotten, the error is [holdfast.ErrConflict], and
// nothing is written.
//
// Encrypted data is a third longer than plain data, and the same size limit applies to it.
func (v *Vault) Append(ctx context.Context, d holdfast.Doer, stream string, expected Version, all ...Event) (Version, error) {
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
	return Append(ctx, d, stream, expected, sealed...)
}

// Read is like the function [Read], and decrypts the events, as [Vault.Open] does.
func (v *Vault) Read(ctx context.Context, d holdfast.Doer, stream string, from Version) iter.Seq2[Event, error] {
	return iterate(events.ReadArgs{Stream: stream, From: int64(from), Limit: events.MaxRead}, v.pages(ctx, d))
}

// ReadBackward is like the function [ReadBackward], and decrypts the events, as [Vault.Open]
// does.
func (v *Vault) ReadBackward(ctx context.Context, d holdfast.Doer, stream string, from Version) iter.Seq2[Event, error] {
	return iterate(events.ReadArgs{Stream: stream, From: int64(from), Limit: backwardPage, Backward: true}, v.pages(ctx, d))
}

// pages is like the function pages, and decrypts the events.
func (v *Vault) pages(ctx context.Context, d holdfast.Doer) func(events.ReadArgs) ([]Event, error) {
	read := pages(ctx, d)
	return func(a events.ReadArgs) ([]Event, error) {
		all, err := read(a)
		if err == nil {
			err = v.Open(ctx, d, all)
		}
		if err != nil {
			return nil, err
		}
		return all, nil
	}
}

// Open decrypts events that were read without the vault, in place. Decrypting an event a second
// time is an error. Events without a subject stay unchanged. Events of a forgotten subject get the
// data null, and Forgotten is set.
//
// If any data cannot be decrypted, none of the events is changed. The error is [holdfast.ErrForbidden] if the data was
// stored under another master key, and has the code [fault.DatabaseDamaged] if the data or the key has changed since it
// was written.
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

// Forget permanently deletes a subject's key, for all nodes, and reports whether there was one. The subject need not
// exist. After the call, nothing can be appended for the subject. If the database's response is lost, Forget tries
// again, and may then return false even though this call deleted the key.
func (v *Vault) Forget(ctx context.Context, d holdfast.Doer, subject string) (bool, error) {
	return subjectkey.Forget(ctx, store.DoerOf(d), subject)
}

// opening returns the keys of the known subjects: nil for forgotten ones.
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

// sealing returns the keys of all the subjects, and creates missing ones. Two callers that create
// a key concurrently both use the one that was stored.
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
				"subject %q was forgotten: append the event without a subject and without personal data, or use a new subject", name).
				With("subject", name)
		}
	}
	return keys, nil
}

// first creates a key for a subject and returns the key that is stored afterwards.
func (v *Vault) first(ctx context.Context, d holdfast.Doer, name string) (cipher.AEAD, error) {
	workspace := store.WorkspaceOf(ctx)
	stored, err := subjectkey.Make(ctx, store.DoerOf(d), name, v.wrap(workspace, name, newKey()))
	if err != nil {
		return nil, err
	}
	return v.unwrap(workspace, name, stored)
}

// subjectsOf returns each subject once, sorted. Keys are created in this order, so that two
// transactions do not deadlock.
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
