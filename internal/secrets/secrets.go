// Package secrets stores the named secrets of a workspace, and opens the references to them at the moment of a call.
//
// A value is encrypted and bound to its row (package seal). Nothing returns it but [Open], whose result is for one outgoing call and
// stays in memory. The stored form of a handler, a webhook or a step has the reference only.
//
// A change of a secret, and of what refers to secrets, raises the revision of the workspace's registry first. Its row serializes
// them, so that a secret is not deleted while a reference to it is declared.
package secrets

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/secretref"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Secret is a named secret without its value.
type Secret struct {
	Name                 string
	Version              int64
	CreatedBy, UpdatedBy string
	CreatedAt, UpdatedAt time.Time
	OverlapUntil         *time.Time // end of the time in which the previous value signs too; may be in the past

	sealed, former string // encrypted; former is "" outside of an overlap
}

// MaxOverlap is the maximum overlap of a rotation.
const MaxOverlap = 30 * 24 * time.Hour

type createArgs struct {
	name   string `arg:"name"`
	sealed string `arg:"sealed"`
	actor  string `arg:"actor"`
}

type rotateArgs struct {
	createArgs
	version int64         `arg:"version"`
	overlap time.Duration `arg:"overlap"`
}

type deleteArgs struct {
	name    string `arg:"name"`
	version int64  `arg:"version"`
}

type listArgs struct {
	name  string `arg:"name"`
	after string `arg:"after"`
	limit int    `arg:"limit"`
}

var (
	createVerb = store.VerbOf[createArgs](store.Decl{Name: "secrets.create", Idempotent: true},
		func(a createArgs) []string { return []string{row(a.name)} }, store.ScanApplied)
	rotateVerb = store.VerbOf[rotateArgs](store.Decl{Name: "secrets.rotate", Idempotent: true},
		func(a rotateArgs) []string { return []string{row(a.name)} }, store.ScanApplied)
	deleteVerb = store.VerbOf[deleteArgs](store.Decl{Name: "secrets.delete", Idempotent: true},
		func(a deleteArgs) []string { return []string{row(a.name)} }, store.ScanApplied)
	listVerb = store.VerbOf[listArgs](store.Decl{Name: "secrets.list", Lane: store.Read}, nil,
		func(all *[]Secret, r store.Row) error {
			var s Secret
			var until time.Time
			err := r.Scan(&s.Name, &s.Version, &s.sealed, &s.former, &until, &s.CreatedBy, &s.CreatedAt, &s.UpdatedBy, &s.UpdatedAt)
			s.OverlapUntil = store.Moment(until)
			*all = append(*all, s)
			return err
		})
)

func row(name string) string { return "secret/" + name }

// sealContext returns the context that an encrypted value is bound to.
func sealContext(workspace, name string) []string { return []string{"secret", workspace, name} }

// PutArgs are the arguments of [Put].
type PutArgs struct {
	Name, Value string
	Overlap     time.Duration
	Expected    *int64 // the version that it replaces, 0 for none; nil for any
	By          string
}

// Put creates a secret in the context's workspace, or replaces its value, and reports whether it was created. During the overlap,
// the previous value signs too. The present value changes nothing. used is called in between, with the registry locked, and may refuse the value.
func Put(ctx context.Context, tx *store.Tx, box *seal.Box, a PutArgs, used func() error) (s Secret, created bool, err error) {
	if err := secretref.CheckName(a.Name); err != nil {
		return s, false, err
	}
	if err := secretref.CheckValue(a.Value); err != nil {
		return s, false, err
	}
	if a.Overlap < 0 || a.Overlap > MaxOverlap {
		return s, false, fault.New(fault.Validation, "overlapMs must be between 0 and %d, got %d", MaxOverlap.Milliseconds(), a.Overlap.Milliseconds()).With("pointer", "/overlapMs")
	}
	if _, err := store.Raise(ctx, tx); err != nil {
		return s, false, err
	}
	was, err := find(ctx, tx, a.Name)
	if err != nil {
		return s, false, err
	}
	if a.Expected != nil && *a.Expected != was.Version {
		return s, false, fault.New(fault.Concurrency, "secret %q is at version %d, not %d: read it again and retry", a.Name, was.Version, *a.Expected).
			With("expectedVersion", *a.Expected).With("lastVersion", was.Version)
	}
	if err := used(); err != nil {
		return s, false, err
	}
	next := createArgs{a.Name, box.Seal(a.Value, sealContext(store.WorkspaceOf(ctx), a.Name)...), a.By}
	created = was.Version == 0
	if present, err := box.Open(was.sealed, sealContext(store.WorkspaceOf(ctx), a.Name)...); !created && err == nil && present == a.Value { // an overlap goes on
		return was, false, nil
	}
	var applied bool
	if created {
		applied, err = createVerb.Do(ctx, tx, next)
	} else {
		applied, err = rotateVerb.Do(ctx, tx, rotateArgs{next, was.Version, a.Overlap})
	}
	if err == nil && !applied {
		err = changed(a.Name)
	}
	if err != nil {
		return s, false, err
	}
	if s, err = find(ctx, tx, a.Name); err != nil {
		return s, false, err
	}
	action := audit.Action{Name: "secret.create", Subject: row(a.Name), Actor: a.By, After: s.audited()}
	if !created {
		action.Name, action.Before = "secret.rotate", was.audited()
	}
	return s, created, audit.Record(ctx, tx, action)
}

func changed(name string) error {
	return fault.New(fault.Conflict, "secret %q was changed concurrently: read it again and retry", name).AsRetryable()
}

// audited returns a secret as the audit shows it.
func (s Secret) audited() any {
	return map[string]any{"version": s.Version, "overlapUntil": s.OverlapUntil}
}

// Delete deletes a secret. used is called before, with the registry locked, and returns an error if anything refers to it.
func Delete(ctx context.Context, tx *store.Tx, name, by string, used func() error) error {
	if _, err := store.Raise(ctx, tx); err != nil {
		return err
	}
	was, err := Get(ctx, tx, name)
	if err != nil {
		return err
	}
	if err := used(); err != nil {
		return err
	}
	applied, err := deleteVerb.Do(ctx, tx, deleteArgs{name, was.Version})
	if err == nil && !applied {
		err = changed(name)
	}
	if err != nil {
		return err
	}
	return audit.Record(ctx, tx, audit.Action{Name: "secret.delete", Subject: row(name), Actor: by, Before: was.audited()})
}

// find returns a secret. One that does not exist has the version 0.
func find(ctx context.Context, d store.Doer, name string) (Secret, error) {
	if secretref.CheckName(name) != nil {
		return Secret{}, nil
	}
	all, err := listVerb.Do(ctx, d, listArgs{name: name, limit: 1})
	if err != nil || len(all) == 0 {
		return Secret{}, err
	}
	return all[0], nil
}

// Get returns a secret of the context's workspace, or [fault.NotFound].
func Get(ctx context.Context, d store.Doer, name string) (Secret, error) {
	s, err := find(ctx, d, name)
	if err == nil && s.Version == 0 {
		err = fault.New(fault.NotFound, "secret %q does not exist", name)
	}
	return s, err
}

// List returns secrets of the context's workspace ordered by name, after the given name.
func List(ctx context.Context, d store.Doer, after string, limit int) ([]Secret, error) {
	return listVerb.Do(ctx, d, listArgs{after: after, limit: limit})
}

// Check refuses names that no secret of the context's workspace has. In a transaction that has raised the revision of the registry,
// the secrets remain until it ends.
func Check(ctx context.Context, d store.Doer, names []string) error {
	for _, name := range names {
		if _, err := Get(ctx, d, name); fault.CodeOf(err) == fault.NotFound {
			return fault.New(fault.Validation, "secret %q does not exist: create it with PUT secrets/%s, or correct the reference", name, name).With("secret", name)
		} else if err != nil {
			return err
		}
	}
	return nil
}
