package store

import (
	"iter"
	"time"
)

// SearchScan is how many rows one statement of a search reads (decision 047). Tests set it, before any search.
var SearchScan = 1000

// Found is a row that a search returns. A search filters a list for which there is no index: one statement reads at most
// [SearchScan] rows in the order of a key, and returns those that match and, as the Edge, the last one that it read. The next
// statement continues behind it.
type Found[T any] struct {
	Row    T
	Wanted bool
	Edge   bool
}

// HasMore reports whether there may be more behind the rows that a search for limit rows has returned.
func HasMore[T any](found []Found[T], limit int) bool {
	return len(found) > 0 && (len(found) == limit || found[len(found)-1].Edge)
}

// SeqFound is [Seq] for a search.
func SeqFound[A, B any](read func(after A, limit int) ([]Found[A], error), public func(A) B) iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		for after := *new(A); ; {
			found, err := read(after, seqPage)
			if err != nil {
				yield(*new(B), err)
				return
			}
			for _, f := range found {
				if f.Wanted && !yield(public(f.Row), nil) {
					return
				}
				after = f.Row
			}
			if !HasMore(found, seqPage) {
				return
			}
		}
	}
}

// Times are ranges of times in a filter, each from since, inclusive, until, exclusive. Zero is no limit.
type Times struct {
	Since, Until               time.Time // when it was created
	UpdatedSince, UpdatedUntil time.Time
}

// Bind binds the arguments of the fragment lists/matches_times, in ms since 1970.
func (t Times) Bind(args *Args) {
	for name, at := range t.named {
		args.Int(name, millisOf(at))
	}
}

func (t Times) named(yield func(string, time.Time) bool) {
	_ = yield("since", t.Since) && yield("until", t.Until) && yield("updated_since", t.UpdatedSince) && yield("updated_until", t.UpdatedUntil)
}

// millisOf returns a time in ms since 1970, 0 for none.
func millisOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
