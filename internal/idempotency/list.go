package idempotency

import (
	"context"
	"strings"

	"github.com/holdfast-go/holdfast/internal/store"
)

type listArgs struct {
	operation string `arg:"operation"`
	after     string `arg:"after"`
	limit     int    `arg:"limit"`
}

var listByOperationVerb = store.VerbOf[listArgs](store.Decl{Name: "idempotency.list_by_operation", Lane: store.Read}, nil,
	func(all *[]Request, r store.Row) error {
		var q Request
		var answer string
		err := r.Scan(&q.Key, (*string)(&q.State), &q.Operation, &q.Subject, &q.Status, &answer, &q.CreatedAt)
		if answer != "" {
			q.Answer = []byte(answer)
		}
		*all = append(*all, q)
		return err
	})

// ListByOperation returns requests whose response is, or will be, the outcome of an operation, ordered by their stored
// keys, after the given one.
func ListByOperation(ctx context.Context, d store.Doer, operation, after string, limit int) ([]Request, error) {
	return listByOperationVerb.Do(ctx, d, listArgs{operation, after, limit})
}

// Space returns the first part of a stored key, which separates the uses of the table: the id of the API route, or "idem"
// for package idem.
func (q Request) Space() string {
	space, _, _ := strings.Cut(q.Key, "/")
	return space
}
