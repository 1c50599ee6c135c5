// Package subjectkey keeps the keys that the data of subjects is encrypted under,
// a subject being whoever the data is about. What is kept is wrapped under a key
// that the database never sees. To forget a subject is to drop its key: a row
// without one stays, so that no other is made under the same name.
package subjectkey

import (
	"context"
	"encoding/hex"

	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Key is a subject's key, wrapped; nil for a subject that is forgotten.
type Key []byte

type makeArgs struct {
	subject string `arg:"subject"`
	key     string `arg:"key"` // in hex
}

var (
	findVerb = store.NewVerb(store.Decl{Name: "subjects.find", Lane: store.Read}, nil,
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
	makeVerb = store.VerbOf[makeArgs](store.Decl{Name: "subjects.make", Idempotent: true},
		func(a makeArgs) []string { return []string{"subject/" + a.subject} }, store.ScanValue[[]byte])
	forgetVerb = store.NewVerb(store.Decl{Name: "subjects.forget", Idempotent: true},
		func(subject string) []string { return []string{"subject/" + subject} },
		store.TextArg("subject"),
		store.ScanValue[bool])
)

// Check refuses a name that no subject can have.
func Check(subject string) error { return strictjson.Text("subject", subject, events.MaxName) }

// Find returns the keys of those subjects that are known.
func Find(ctx context.Context, d store.Doer, subjects []string) (map[string]Key, error) {
	if len(subjects) == 0 {
		return nil, nil
	}
	return findVerb.Do(ctx, d, subjects)
}

// Make gives a subject a key, unless it is known, and returns the one that it
// has then: of several who make it at once all get the same.
func Make(ctx context.Context, d store.Doer, subject string, key Key) (Key, error) {
	return makeVerb.Do(ctx, d, makeArgs{subject, hex.EncodeToString(key)})
}

// Forget drops a subject's key, and says whether it had one. It may be repeated.
func Forget(ctx context.Context, d store.Doer, subject string) (bool, error) {
	if err := Check(subject); err != nil {
		return false, err
	}
	return forgetVerb.Do(ctx, d, subject)
}
