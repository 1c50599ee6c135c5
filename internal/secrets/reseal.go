package secrets

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/internal/store"
)

type listSealedArgs struct {
	key   string `arg:"key"`
	after string `arg:"after"`
	limit int    `arg:"limit"`
}

// sealed is an encrypted value in the database.
type sealed struct{ place, kind, workspace, name, text string }

type resealArgs struct {
	name     string `arg:"name"`
	was      string `arg:"was"`
	resealed string `arg:"resealed"`
}

const resealPage = 100

var (
	listSealedVerb = store.VerbOf[listSealedArgs](store.Decl{Name: "secrets.list_sealed", Lane: store.Read}, nil,
		func(all *[]sealed, r store.Row) error {
			var s sealed
			err := r.Scan(&s.place, &s.kind, &s.workspace, &s.name, &s.text)
			*all = append(*all, s)
			return err
		})
	resealVerbs = map[string]*store.Verb[resealArgs, bool]{"secret": resealVerb("secrets"), "handler": resealVerb("handlers"), "webhook": resealVerb("webhooks")}
)

func resealVerb(folder string) *store.Verb[resealArgs, bool] {
	return store.VerbOf[resealArgs](store.Decl{Name: folder + ".reseal", Idempotent: true},
		func(a resealArgs) []string { return []string{folder + "/" + a.name} }, store.ScanApplied)
}

// Resealed is the result of [Reseal].
type Resealed struct {
	Resealed int // values that are now encrypted with the first key
	Failed   int // values that could not be decrypted, and are left as they are
}

// Reseal encrypts all secrets of all workspaces with the first key of the box: those with names, and those of handlers and
// webhooks. Each value is replaced only if it was not changed meanwhile, so that Reseal may run beside anything, and again.
func Reseal(ctx context.Context, d store.Doer, box *seal.Box) (r Resealed, first error) {
	all, err := store.Pages(ctx, d, listSealedVerb, resealPage, listSealedArgs{key: box.Key(), limit: resealPage},
		func(last sealed) listSealedArgs { return listSealedArgs{box.Key(), last.place, resealPage} })
	if err != nil {
		return r, err
	}
	for _, s := range all {
		bound := []string{s.kind, s.workspace, s.name}
		value, err := box.Open(s.text, bound...)
		if err != nil {
			r.Failed++
			if first == nil {
				first = err
			}
			continue
		}
		applied, err := resealVerbs[s.kind].Do(store.InWorkspace(ctx, s.workspace), d, resealArgs{s.name, s.text, box.Seal(value, bound...)})
		if err != nil {
			return r, err
		}
		if applied {
			r.Resealed++
		}
	}
	return r, first
}
