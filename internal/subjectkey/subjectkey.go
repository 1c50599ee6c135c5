// Package subjectkey stores the keys that encrypt the data of subjects. A subject is
// the person or thing that the data is about. The stored keys are wrapped under a key
// that the database never sees. Forgetting a subject deletes its key. A row without a
// key stays, so that the name never gets another key.
package subjectkey

import (
	"bytes"
	"context"
	"encoding/hex"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Key is the wrapped key of a subject; nil for a forgotten subject.
type Key []byte

type getOrCreateArgs struct {
	subject string `arg:"subject"`
	key     string `arg:"key"` // in hex
}

var (
	getVerb = store.NewVerb(store.Decl{Name: "subject_keys.get", Lane: store.Read}, nil,
		func(subjects []string, args *store.Args) { args.Text("subjects", store.JSON(subjects)) },
		func(found *map[string]Key, row store.Row) error {
			var name string
			var key []byte
			if err := row.Scan(&name, &key); err != nil {
				return err
			}
			if *found == nil {
				*found = make(map[string]Key)
			}
			(*found)[name] = key
			return nil
		})
	getOrCreateVerb = store.VerbOf[getOrCreateArgs](store.Decl{Name: "subject_keys.get_or_create", Idempotent: true},
		func(a getOrCreateArgs) []string { return []string{"subject/" + a.subject} }, store.ScanValue[[]byte])
	forgetVerb = store.NewVerb(store.Decl{Name: "subject_keys.forget", Idempotent: true},
		func(subject string) []string { return []string{"subject/" + subject} },
		store.TextArg("subject"),
		store.ScanValue[bool])
)

// Check validates the name of a subject.
func Check(subject string) error { return strictjson.Text("subject", subject, events.MaxName) }

// Encrypted data begins with SealedHead and ends with SealedTail.
const (
	SealedHead = `{"$sealed":"`
	SealedTail = `"}`
)

// IsSealed reports whether data is encrypted.
func IsSealed(data []byte) bool {
	return len(data) >= len(SealedHead)+len(SealedTail) &&
		bytes.HasPrefix(data, []byte(SealedHead)) && bytes.HasSuffix(data, []byte(SealedTail))
}

// CheckEvent rejects an event that has a subject but unencrypted data, and an event with
// encrypted data but without a subject.
func CheckEvent(name, subject string, data []byte) error {
	switch sealed := IsSealed(data); {
	case subject != "" && !sealed:
		return fault.New(fault.Validation, "event %s has subject %q, whose data is stored encrypted: append the event through a Vault", name, subject).
			With("field", "subject")
	case subject == "" && sealed:
		return fault.New(fault.Validation, `the data of event %s has the form {"$sealed": …}, which is reserved for encrypted data: use another form, or append the event through a Vault with its subject`, name)
	case subject != "":
		return Check(subject)
	}
	return nil
}

// Find returns the keys of the subjects that exist.
func Find(ctx context.Context, d store.Doer, subjects []string) (map[string]Key, error) {
	if len(subjects) == 0 {
		return nil, nil
	}
	return getVerb.Do(ctx, d, subjects)
}

// Make stores a key for a new subject, and returns the subject's key. Concurrent
// callers all get the same key. A forgotten subject has none.
func Make(ctx context.Context, d store.Doer, subject string, key Key) (Key, error) {
	return getOrCreateVerb.Do(ctx, d, getOrCreateArgs{subject, hex.EncodeToString(key)})
}

// Forget deletes the key of a subject, and reports whether it had one. It may be
// repeated.
func Forget(ctx context.Context, d store.Doer, subject string) (bool, error) {
	if err := Check(subject); err != nil {
		return false, err
	}
	return forgetVerb.Do(ctx, d, subject)
}
